"""Expressions in the words of SQL, for `explain` and for messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from service.plan.expressions import Call, Column, Expression, Literal
from service.plan.types import flink

_INFIX = ("AND", "OR", "LIKE", "SIMILAR TO", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_BARE = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP")
_OF_UNIT = re.compile(r"(?P<name>EXTRACT|TIMESTAMPDIFF)\((?P<unit>\w+)\)|(?P<rounded>FLOOR|CEIL) TO (?P<to>\w+)")


def describe(expression: Expression) -> str:
    """Return `expression` as people read it, with parentheses around operators.

    >>> from service.plan.types import BIGINT, INT
    >>> amount = Column(0, INT, "amount")
    >>> print(describe(Call("+", (Call("CAST", (amount,), BIGINT, ""), Literal("1", INT)), BIGINT, "")))
    (CAST(amount AS BIGINT) + 1)
    """
    match expression:
        case Column(index, _, name):
            return name or f"${index}"
        case Literal(duckdb, _, text):
            return text or duckdb
        case Call():
            return _call(expression, [describe(argument) for argument in _written(expression)])


def _written(call: Call) -> tuple[Expression, ...]:
    """The arguments of a call as they are written: RAND_INTEGER([seed,] n) is computed from n and a RAND([seed]), of
    which a plan shows what it is drawn from."""
    match call:
        case Call("RAND_INTEGER", (bound, Call("RAND", seed, deterministic=False))):
            return (*seed, bound)
        case _:
            return call.arguments


def _call(call: Call, texts: list[str]) -> str:
    name = call.name
    if name in _FORMS:
        return _FORMS[name](call, texts)
    if unit := _OF_UNIT.fullmatch(name):
        if unit["rounded"]:
            return f"{unit['rounded']}({texts[0]} TO {unit['to']})"
        between = " FROM " if unit["name"] == "EXTRACT" else ", "
        return f"{unit['name']}({between.join([unit['unit'], *texts[:1]])}{''.join(', ' + t for t in texts[1:])})"
    if name.startswith("."):
        return f"{texts[0]}{name}"
    if len(texts) == 1 and name.startswith("IS "):
        return f"({texts[0]} {name})"
    if name in _INFIX or (len(texts) == 2 and not any(c.isalnum() for c in name)):
        return f"({f' {name} '.join(texts)})"
    return name if name in _BARE and not texts else f"{name}({', '.join(texts)})"


def _cast(call: Call, texts: list[str]) -> str:
    return f"{call.name}({texts[0]} AS {flink(call.type)})"


def _case(call: Call, texts: list[str]) -> str:
    whens = "".join(f" WHEN {when} THEN {then}" for when, then in zip(texts[:-1:2], texts[1::2], strict=True))
    return f"CASE{whens} ELSE {texts[-1]} END"


_FORMS: Mapping[str, Callable[[Call, list[str]], str]] = {
    "CAST": _cast,
    "TRY_CAST": _cast,
    "CASE": _case,
    "NOT": lambda call, texts: f"(NOT {texts[0]})",
    "unary -": lambda call, texts: f"-{texts[0]}",
    "[]": lambda call, texts: f"{texts[0]}[{texts[1]}]",
    "ARRAY": lambda call, texts: f"ARRAY[{', '.join(texts)}]",
    "MAP": lambda call, texts: f"MAP[{', '.join(texts)}]",
    "BETWEEN": lambda call, texts: f"({texts[0]} BETWEEN {texts[1]} AND {texts[2]})",
    "IN": lambda call, texts: f"({texts[0]} IN ({', '.join(texts[1:])}))",
    "TIMESTAMPADD": lambda call, texts: f"TIMESTAMPADD({', '.join([*map(str, call.constants), *texts])})",
}
"""The calls that SQL writes in a way of their own."""
