"""Applying a function of the table to arguments, and saying what is wrong where that cannot be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from operator import add

from service.plan import types
from service.plan.expressions import Expression
from service.plan.types import DataType, flink
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions.aggregate_types import AGGREGATES
from service.sql.expressions.context import Context
from service.sql.functions import FORMS, FUNCTIONS, PLANNED
from service.sql.functions.signature import Overload
from service.sql.parse.call_grammar import TYPED_LITERAL

# Functions that mean something only where a query is aggregated or windowed.
_WINDOW = (
    {
        f"{window}_{end}"
        for window in ("TUMBLE", "HOP", "SESSION", "CUMULATE")
        for end in ("START", "END", "ROWTIME", "PROCTIME")
    }
    | {"TUMBLE", "HOP", "SESSION", "CUMULATE", "ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE"}
    | {"WINDOW_START", "WINDOW_END", "EVENT_TIME"}
)

_ALIKE = 0.7
"""Short names of functions are alike by chance: BITAND and TAN by two thirds."""

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("NVL", "ISNULL"), "COALESCE(a, b)"),
    **dict.fromkeys(("LENGTH", "LEN"), "CHAR_LENGTH(text)"),
    **dict.fromkeys(("DATE_ADD", "DATEADD", "ADDDATE"), "time + INTERVAL '1' DAY, or TIMESTAMPADD(DAY, 1, time)"),
    **dict.fromkeys(("DATE_SUB", "SUBDATE"), "time - INTERVAL '1' DAY"),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), "TIMESTAMPDIFF(DAY, start, end)"),
    **dict.fromkeys(("DATE_TRUNC", "TRUNC"), "FLOOR(time TO DAY), or TRUNCATE(number)"),
    **dict.fromkeys(("STRING_AGG", "GROUP_CONCAT"), "LISTAGG(text, ',')"),
    "TO_CHAR": "DATE_FORMAT(time, 'yyyy-MM-dd'), or CAST(number AS STRING)",
    **dict.fromkeys(("STR_TO_DATE", "PARSE_TIMESTAMP"), "TO_TIMESTAMP(text, 'yyyy-MM-dd')"),
    "DATE": "CAST(time AS DATE)",
    **dict.fromkeys(
        ("BITAND", "BIT_GET", "GETBIT"), "MOD(number / 4, 2) for its third bit; there are no operators on bits"
    ),
    **dict.fromkeys(("BITOR", "BITXOR", "BITNOT"), "arithmetic: there are no operators on bits"),
    "SYSDATE": "CURRENT_TIMESTAMP",
    "IIF": "IF(condition, a, b)",
    "UCASE": "UPPER(text)",
    "LCASE": "LOWER(text)",
}
"""Functions of other dialects, and how Flink SQL says the same."""

_OF_QUERIES: Mapping[str, str] = {
    "EXISTS": "EXISTS (SELECT ...)",
    **{word: f"= {word} (SELECT ...), or IN (1, 2) for values" for word in ("ANY", "SOME", "ALL")},
}
"""Words that look like functions where no query follows them, and how they are written."""

_GROUPING = ("GROUPING", "GROUPING_ID", "GROUP_ID")


def applied(name: str, arguments: Sequence[Expression], context: Context) -> Expression:
    """Return the function `name` of the table applied to `arguments`. Raises SqlError if none of its overloads takes
    their types."""
    given = [a.type for a in arguments]
    for overload in FUNCTIONS[name]:
        if overload.takes(given):
            return overload.call(name, tuple(arguments), context)
    shown = name.removeprefix("unary ")
    raise SqlError(
        f"{shown} cannot be applied to ({', '.join(map(flink, given))})",
        detail=f"{shown} takes {' or '.join(dict.fromkeys(p for o in FUNCTIONS[name] for p in _parameters(o)))}",
        hint=_cast_hint(given),
    )


def _parameters(overload: Overload) -> Iterator[str]:
    """What an overload takes, by the names of types: once for each type that a parameter stands for."""
    named = [_TYPES.get(kind.removesuffix("*"), (kind.removesuffix("*"),)) for kind in overload.parameters]
    more = ["..." if kind.endswith("*") else "" for kind in overload.parameters]
    for types_ in product(*named):
        yield f"({', '.join(map(add, types_, more))})"


_TYPES: Mapping[str, tuple[str, ...]] = {
    "MOMENT": ("TIMESTAMP", "TIMESTAMP_LTZ"),
    "EXACT": ("INTEGER", "DECIMAL"),
    "APPROXIMATE": ("FLOAT", "DOUBLE"),
    "MONTHS": ("INTERVAL MONTH",),
}
"""The kinds of parameters that are not named after a type, and the types that they take."""


def _cast_hint(given: Sequence[DataType]) -> str:
    return "use CAST" if any(t == types.STRING or isinstance(t, types.Text) for t in given) else ""


def is_known(name: str) -> bool:
    """Return whether a function `name` may be called anywhere in a query."""
    known = name in FUNCTIONS or name in FORMS or name in AGGREGATES
    return known or name in _WINDOW or name in _GROUPING or name.endswith(TYPED_LITERAL)


def unknown_function(name: str) -> SqlError:
    """Return why a call of `name` cannot be compiled."""
    if name in _OF_QUERIES:
        return SqlError(f"{name} needs a query", hint=f"write {_OF_QUERIES[name]}")
    if name in AGGREGATES:
        return SqlError(f"the aggregate {name} is not allowed here", hint="aggregates stand in SELECT and HAVING")
    if name in _WINDOW:
        return SqlError(f"{name} is not allowed here", hint="it needs a window in GROUP BY or an OVER clause")
    if name in _GROUPING:
        return SqlError(f"{name} is not allowed here", hint="it stands in SELECT and HAVING of a query with GROUP BY")
    if name in PLANNED:
        return SqlError(f"the function {name} is not supported yet", detail=PLANNED[name])
    if name in ELSEWHERE:
        return SqlError(f"the function {name} does not exist", hint=f"write {ELSEWHERE[name]}")
    known = [n for n in (*FUNCTIONS, *FORMS) if n.replace("_", "").isalnum()]
    return SqlError(f"the function {name} does not exist", hint=did_you_mean(name, (*known, *AGGREGATES), _ALIKE))
