"""The aggregates: how each one starts from rows, gathers partials, adds one partial to another, and is read.

`AGGREGATES` maps a name to its recipe. A recipe keeps one or more *folds*, small sets of columns that can be computed
from some rows and put together with those of other rows; equal folds of several aggregates are kept once. What cannot
be folded (DISTINCT, and MIN and MAX where rows are taken back) is computed from the multiset of its values, which
`accumulators` arranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.columns import duckdb_type
from operators.kernel import WEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate over columns of the input.

    `function` is a name of `AGGREGATES`; COUNT without arguments counts rows. `filter` is the position of a BOOLEAN
    column: only rows where it is true are taken in. `constants` are literal arguments as DuckDB text, such as LISTAGG's
    separator. The type of the answer is that of the operator's output column.
    """

    function: str
    arguments: tuple[int, ...] = ()
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Columns that partial results are kept in.

    `start` computes them from rows; `gather` from columns {0}, {1}, ... of many partials; `add` from {a0}, {a1}, ... of
    what is kept (NULL where nothing is) and {b0}, {b1}, ... of what is added.
    """

    start: tuple[str, ...]
    gather: tuple[str, ...]
    add: tuple[str, ...]
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What an aggregate is computed from: DuckDB text `x` of type `type` (None for COUNT(*)), where `filter` is true.

    In an append-only input all weights are 1 and are not read. `over` is the window that folds start in, if any.
    """

    x: str | None
    type: pa.DataType | None
    filter: str | None
    append: bool
    constants: tuple[str, ...] = ()
    over: str = ""

    def where(self, *conditions: str) -> str:
        """What stands behind an aggregate's arguments: the FILTER clause, with further conditions, and the window."""
        every = [c for c in (self.filter, *conditions) if c is not None]
        return (f" FILTER (WHERE {' AND '.join(every)})" if every else "") + self.over

    @property
    def text(self) -> str:
        """The argument of an aggregate that has one."""
        if self.x is None:
            raise TypeError("this aggregate needs an argument")
        return self.x


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an aggregate is computed: the folds it keeps, and its answer from their columns, one list a fold."""

    folds: Callable[[Argument], tuple[Fold, ...]]
    finish: Callable[[Argument, Sequence[Sequence[str]], pa.DataType], str]


def counted(argument: Argument) -> Fold:
    """How many rows (or values that are not NULL) there are."""
    if argument.append:
        start = f"COUNT({argument.x or '*'}){argument.where()}"
    else:
        present = [] if argument.x is None else [f"{argument.x} IS NOT NULL"]
        start = f"CAST(COALESCE(SUM({WEIGHT}){argument.where(*present)}, 0) AS BIGINT)"
    return Fold(
        start=(start,),
        gather=("CAST(COALESCE(SUM({0}), 0) AS BIGINT)",),
        add=("COALESCE({a0}, 0) + COALESCE({b0}, 0)",),
        types=(pa.int64(),),
    )


def wrapped(whole: str, type_: pa.DataType) -> str:
    """The HUGEINT `whole` in the integer type `type_`, around and around as often as it does not fit."""
    half, full = 2 ** (type_.bit_width - 1), 2**type_.bit_width
    return f"CAST(((({whole} + {half}) % {full}) + {full}) % {full} - {half} AS {duckdb_type(type_)})"


def narrowed(text: str, type_: pa.DataType) -> str:
    """The whole number `text` in the integer type `type_`, wrapped around where it does not fit, as in Flink."""
    return f"COALESCE(TRY_CAST({text} AS {duckdb_type(type_)}), {wrapped(f'CAST({text} AS HUGEINT)', type_)})"


def _whole_total(argument: Argument) -> Fold:
    """The sum of integers modulo 2^64, which is exact whenever the sum fits its type; NULL if there was no value."""
    weighted = argument.text if argument.append else f"CAST({argument.text} AS HUGEINT) * {WEIGHT}"
    if argument.type != pa.int64() and not argument.append:
        weighted = f"CAST({argument.text} AS BIGINT) * {WEIGHT}"
    around = wrapped("(CAST({a0} AS HUGEINT) + {b0})", pa.int64())
    return Fold(
        start=(narrowed(f"SUM({weighted}){argument.where()}", pa.int64()),),
        gather=(narrowed("SUM({0})", pa.int64()),),
        add=(
            "COALESCE(TRY({a0} + {b0}),"
            f" CASE WHEN {{a0}} IS NULL THEN {{b0}} WHEN {{b0}} IS NULL THEN {{a0}} ELSE {around} END)",
        ),
        types=(pa.int64(),),
    )


def _decimal_total(argument: Argument) -> Fold:
    """The sum of decimals, with all the digits there are; NULL if there was no value."""
    assert argument.type is not None
    kind = pa.decimal128(38, argument.type.scale)
    wide = duckdb_type(kind)
    weighted = argument.text
    if not argument.append:
        weighted = f"CAST({argument.text} AS {wide}) * CAST({WEIGHT} AS DECIMAL(18, 0))"
    return Fold(
        start=(f"CAST(SUM({weighted}){argument.where()} AS {wide})",),
        gather=(f"CAST(SUM({{0}}) AS {wide})",),
        add=("COALESCE({a0} + {b0}, {a0}, {b0})",),
        types=(kind,),
    )


def _compensated_total(argument: Argument, x: str) -> Fold:
    """The sum of floating-point values `x` in two columns: the sum, and what rounding has lost of it (Neumaier)."""
    weighted = x if argument.append else f"{x} * {WEIGHT}"
    error = "({a0} - (({a0} + {b0}) - (({a0} + {b0}) - {a0}))) + ({b0} - (({a0} + {b0}) - {a0}))"
    lost = f"CASE WHEN isfinite({{a0}} + {{b0}}) THEN {error} ELSE 0 END"
    return Fold(
        start=(f"FSUM({weighted}){argument.where()}", "CAST(0 AS DOUBLE)"),
        gather=("FSUM({0})", "COALESCE(FSUM({1}), 0)"),
        add=(
            "COALESCE({a0} + {b0}, {a0}, {b0})",
            f"COALESCE({{a1}}, 0) + COALESCE({{b1}}, 0) + COALESCE({lost}, 0)",
        ),
        types=(pa.float64(), pa.float64()),
    )


def _total(argument: Argument) -> Fold:
    assert argument.type is not None
    if pa.types.is_decimal(argument.type):
        return _decimal_total(argument)
    if pa.types.is_floating(argument.type):
        return _compensated_total(argument, f"CAST({argument.text} AS DOUBLE)")
    return _whole_total(argument)


def _total_text(argument: Argument, columns: Sequence[str]) -> str:
    """The value of a total from its columns."""
    return f"({columns[0]} + {columns[1]})" if len(columns) == 2 else columns[0]


def _count_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CAST({columns[0][0]} AS {duckdb_type(type_)})"


def _sum_folds(argument: Argument) -> tuple[Fold, ...]:
    return (_total(argument),) if argument.append else (_total(argument), counted(argument))


def _sum_finish(argument: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    value = _total_text(argument, columns[0])
    text = narrowed(value, type_) if pa.types.is_integer(type_) else f"TRY_CAST({value} AS {duckdb_type(type_)})"
    return text if argument.append else f"CASE WHEN {columns[1][0]} > 0 THEN {text} END"


def _avg_folds(argument: Argument) -> tuple[Fold, ...]:
    return _total(argument), counted(argument)


def _avg_finish(argument: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    """Integers are divided toward zero, decimals rounded half up at the scale of the answer."""
    assert argument.type is not None
    value, count = _total_text(argument, columns[0]), columns[1][0]
    if pa.types.is_floating(argument.type):
        text = f"{value} / {count}"
    elif pa.types.is_integer(type_):
        text = f"{value} // {count}"
    elif pa.types.is_floating(type_):
        text = f"CAST({value} AS DOUBLE) / {count}"
    else:
        scale = argument.type.scale if pa.types.is_decimal(argument.type) else 0
        unscaled = (
            f"CAST({value} * CAST({10**scale} AS DECIMAL(38, 0)) AS HUGEINT) * {10 ** max(0, type_.scale - scale)}"
        )
        half = f"(CASE WHEN {value} < 0 THEN -{count} ELSE {count} END)"
        quotient = f"CAST((2 * {unscaled} + {half}) // (2 * {count}) AS DECIMAL(38, 0))"
        unit = f"CAST('{10**-type_.scale:.{type_.scale}f}' AS DECIMAL({type_.scale + 1}, {type_.scale}))"
        text = f"TRY({quotient} * {unit})"
    return f"CASE WHEN {count} > 0 THEN CAST({text} AS {duckdb_type(type_)}) END"


def _deviation_folds(argument: Argument) -> tuple[Fold, ...]:
    x = f"CAST({argument.text} AS DOUBLE)"
    return counted(argument), _compensated_total(argument, x), _compensated_total(argument, f"{x} * {x}")


def _deviation(*, sample: bool, root: bool) -> Recipe:
    def finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
        (count,), (total, lost), (square, square_lost) = columns
        mean = f"({total} + {lost}) * ({total} + {lost}) / {count}"
        least = 1 if sample else 0
        text = f"GREATEST(({square} + {square_lost}) - {mean}, 0) / ({count} - {least})"
        return f"CASE WHEN {count} > {least} THEN CAST({f'SQRT({text})' if root else text} AS {duckdb_type(type_)}) END"

    return Recipe(folds=_deviation_folds, finish=finish)


def _kept(argument: Argument, function: str, add: str, *conditions: str) -> Fold:
    """A fold of one column of the argument's type that one DuckDB aggregate both starts and gathers."""
    assert argument.type is not None
    present = " FILTER (WHERE {0} IS NOT NULL)" if conditions else ""
    return Fold(
        start=(f"{function}({argument.text}){argument.where(*conditions)}",),
        gather=(f"{function}({{0}}){present}",),
        add=(add,),
        types=(argument.type,),
    )


def _as_is(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CAST({columns[0][0]} AS {duckdb_type(type_)})"


def _listed(argument: Argument) -> tuple[Fold, ...]:
    separator = argument.constants[0] if argument.constants else "','"
    literal = separator.replace("{", "{{").replace("}", "}}")
    fold = Fold(
        start=(f"STRING_AGG({argument.text}, {separator}){argument.where()}",),
        gather=(f"STRING_AGG({{0}}, {literal})",),
        add=(f"COALESCE({{a0}} || {literal} || {{b0}}, {{a0}}, {{b0}})",),
        types=(pa.string(),),
    )
    return (fold,)


def _collected(argument: Argument) -> tuple[Fold, ...]:
    fold = Fold(
        start=(f"LIST({argument.text}){argument.where()}",),
        gather=("FLATTEN(LIST({0}) FILTER (WHERE {0} IS NOT NULL))",),
        add=("CASE WHEN {a0} IS NULL THEN {b0} WHEN {b0} IS NULL THEN {a0} ELSE LIST_CONCAT({a0}, {b0}) END",),
        types=(pa.list_(argument.type),),
    )
    return (fold,)


def _present(argument: Argument, function: str, add: str) -> tuple[Fold, ...]:
    return (_kept(argument, function, add, f"{argument.text} IS NOT NULL"),)


AGGREGATES: Mapping[str, Recipe] = {
    "COUNT": Recipe(folds=lambda a: (counted(a),), finish=_count_finish),
    "SUM": Recipe(folds=_sum_folds, finish=_sum_finish),
    "AVG": Recipe(folds=_avg_folds, finish=_avg_finish),
    "MIN": Recipe(folds=lambda a: (_kept(a, "MIN", "LEAST({a0}, {b0})"),), finish=_as_is),
    "MAX": Recipe(folds=lambda a: (_kept(a, "MAX", "GREATEST({a0}, {b0})"),), finish=_as_is),
    "APPROX_COUNT_DISTINCT": Recipe(folds=lambda a: (counted(a),), finish=_count_finish),
    "VAR_POP": _deviation(sample=False, root=False),
    "VAR_SAMP": _deviation(sample=True, root=False),
    "VARIANCE": _deviation(sample=True, root=False),
    "STDDEV_POP": _deviation(sample=False, root=True),
    "STDDEV_SAMP": _deviation(sample=True, root=True),
    "STDDEV": _deviation(sample=True, root=True),
    "FIRST_VALUE": Recipe(folds=lambda a: _present(a, "FIRST", "COALESCE({a0}, {b0})"), finish=_as_is),
    "LAST_VALUE": Recipe(folds=lambda a: _present(a, "LAST", "COALESCE({b0}, {a0})"), finish=_as_is),
    "LISTAGG": Recipe(folds=_listed, finish=_as_is),
    "ARRAY_AGG": Recipe(folds=_collected, finish=_as_is),
}
"""How each aggregate is computed, by its name in SQL."""

EXTREMES = ("MIN", "MAX")
"""Aggregates that repeat no matter how often a value occurs, and that cannot take a value back without its rivals."""

ORDERED = ("FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG")
"""Aggregates whose answer depends on the order of arrival."""


def refusal(function: str, *, distinct: bool, append: bool, bounded: bool = True) -> str | None:
    """Why an aggregate cannot be computed, or None if it can.

    `append` says that its rows are never taken back, `bounded` that its frame is, where it stands in an OVER window.
    """
    if function not in AGGREGATES:
        return f"{function} is not computed yet"
    if function in ORDERED and not append:
        return f"{function} is not computed yet over rows that may be taken back"
    if function in ("LISTAGG", "ARRAY_AGG") and distinct:
        return f"{function} of DISTINCT values is not computed yet"
    if distinct and not bounded and function not in (*EXTREMES, *ORDERED):
        return f"{function} of DISTINCT values is not computed yet over an unbounded frame"
    return None
