"""Typed scalar expressions over the columns of one relation; rendered to DuckDB when a plan is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeVar

from operators.fingerprint import DUCKDB_TEXT
from operators.time import asks_time
from service.plan.types import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """The column at `index` of the input (of a join: left columns first, then right)."""

    index: int
    type: DataType
    name: str = ""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `duckdb` is its text in DuckDB, already of type `type`; `text` is how the user wrote it."""

    duckdb: str
    type: DataType
    text: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, operator or cast applied to `arguments`.

    `template` is DuckDB text with {0}, {1}, ... for the arguments, answering as Flink SQL does and of exactly `type`.
    A template may hold the named parameter `$now`: the processing time of the batch, a TIMESTAMP in UTC.
    `deterministic` is false for RAND and UUID, which `passes.draw_from_origins` makes functions of a row.

    What a call means is its name, arguments and type, and `constants`: whatever else the template was made from, a
    pattern or a unit of time. The template is how it is computed today. `versions` are those of functions whose answers
    a mend has changed, by name, where they are not 1.

    `faster` has the same value for less: an expression in which Column(i) stands for the argument i. It is no part of
    what a query means, and taken only by operators without state, so that state outlives what is found to be faster.
    """

    name: str
    arguments: tuple[Expression, ...]
    type: DataType
    template: str = field(metadata=DUCKDB_TEXT)
    deterministic: bool = True
    constants: tuple[Literal | str | int, ...] = ()
    versions: tuple[tuple[str, int], ...] = ()
    faster: Expression | None = None


Expression = Column | Literal | Call

T = TypeVar("T")

FEW = 32
"""The number of terms of one operator up to which they stay nested from the left, as they were written."""


def balanced(terms: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Join `terms` by an associative operator: few from the left, many in pairs, so that they do not nest deeply."""
    if len(terms) <= FEW:
        return reduce(join, terms)
    half = len(terms) // 2
    return join(balanced(terms[:half], join), balanced(terms[half:], join))


def depth(expression: Expression) -> int:
    """Return how many calls are nested in `expression`."""
    deepest = 0
    pending: list[tuple[Expression, int]] = [(expression, 0)]
    while pending:
        each, above = pending.pop()
        if isinstance(each, Call):
            deepest = max(deepest, above + 1)
            pending += [(argument, above + 1) for argument in each.arguments]
    return deepest


def render(expression: Expression, column: Callable[[int], str] = "c{}".format) -> str:
    """Return the DuckDB text of `expression`, where `column` names the column at an index."""
    match expression:
        case Column(index):
            return column(index)
        case Literal(duckdb):
            return duckdb
        case Call(arguments=arguments, template=template):
            return template.format(*(render(a, column) for a in arguments))


def deterministic(expression: Expression) -> bool:
    """Return whether `expression` has one value however often it is evaluated for a row in one batch."""
    match expression:
        case Call(arguments=arguments, deterministic=own):
            return own and all(deterministic(a) for a in arguments)
        case _:
            return True


def repeatable(expression: Expression) -> bool:
    """Return whether `expression` has the same value for a row in every batch: it uses neither random numbers nor the
    clock."""
    match expression:
        case Call(arguments=arguments, template=template, deterministic=own):
            return own and not asks_time(template) and all(repeatable(a) for a in arguments)
        case _:
            return True


COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IS DISTINCT FROM")

NEVER_FAIL = {*COMPARISONS, "AND", "OR", "NOT", "IS NULL", "IS TRUE", "IS FALSE", "BETWEEN", "IN"}
"""The calls that have a value, or NULL, for all operands."""


def may_fail(expression: Expression) -> bool:
    """Return whether `expression` may fail for a row: any expression that is more than a comparison may."""
    if not isinstance(expression, Call):
        return False
    return expression.name not in NEVER_FAIL or any(map(may_fail, expression.arguments))


WHERE_MET = "WHERE MET"
"""The name of a call that returns a value only if a condition is met; its arguments are the condition and the value."""

ENFORCED = "NOT NULL"
"""The name of a condition that is never false: for a NULL it fails, which makes the row a dead letter."""


def enforces(expression: Expression) -> bool:
    """Return whether `expression` is a constraint that a row must meet at this step, and not at any earlier one."""
    match expression:
        case Call(name=name, arguments=arguments):
            return name == ENFORCED or any(enforces(a) for a in arguments)
        case _:
            return False


def columns_of(expression: Expression) -> Iterator[int]:
    """Yield the indexes of the columns that `expression` reads, in order, with repetitions."""
    match expression:
        case Column(index):
            yield index
        case Literal():
            return
        case Call(arguments=arguments):
            for argument in arguments:
                yield from columns_of(argument)


def moved(expression: Expression, places: Mapping[int, int]) -> Expression:
    """Return `expression` with each column index i replaced by places[i]."""
    match expression:
        case Column(index):
            return replace(expression, index=places[index])
        case Literal():
            return expression
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(moved(a, places) for a in arguments))


def substituted(expression: Expression, inner: tuple[Expression, ...]) -> Expression:
    """Return `expression` with each column i replaced by inner[i]: the composition of two projections."""
    match expression:
        case Column(index):
            return inner[index]
        case Literal():
            return expression
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(substituted(a, inner) for a in arguments))
