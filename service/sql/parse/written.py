"""Expressions as a user would write them, for hints."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from service.sql.errors import SqlError
from service.sql.parse.dialect import Flink, parse_tokens, tokenize
from service.sql.parse.table_grammar import expression

_LONGEST = 40
"""Characters of an expression that a hint repeats."""


def written(node: exp.Expr) -> str:
    """Return a short text that is read as the expression `node`; nothing where it is long, or has words of its own.

    >>> written(parse_tokens(tokenize("price*`order`"), "price*`order`", expression))
    'price * `order`'
    """
    text = node.sql(dialect=Flink(), comments=False, unsupported_level=ErrorLevel.IGNORE)
    if len(text) > _LONGEST:
        return ""
    try:
        again = parse_tokens(tokenize(text), text, expression)
    except SqlError:
        return ""
    return text if again == node else ""
