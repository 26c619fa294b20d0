"""The limit on nesting in a statement."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from service.sql.errors import SqlError

MAX_NESTING = 100
"""Parentheses, brackets, CASEs and types inside each other."""

_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
_NESTED_TYPES = ("ARRAY", "MAP", "ROW")


def check_nesting(run: Sequence[Token]) -> None:
    """Raise SqlError at the first token of a statement that is nested too deeply."""
    level = types = 0
    before = ""
    for token in run:
        if token.token_type in _OPENS:
            level += 1
        elif token.token_type in _CLOSES:
            level -= 1
        elif token.token_type == TokenType.LT and before in _NESTED_TYPES:
            types += 1
        elif token.token_type == TokenType.GT and types:
            types -= 1
        if level + types > MAX_NESTING:
            raise SqlError(
                f"the statement nests more than {MAX_NESTING} levels",
                detail="parentheses, brackets, CASEs and nested types count",
                hint="give a part of it a name, by WITH or CREATE VIEW",
                at=token.start,
            )
        before = token.text.upper()
