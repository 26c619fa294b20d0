"""The aggregates: how each one is created from rows, combines partials, merges one partial into another, and is read.

`AGGREGATES` maps a name to its function. A function keeps one or more *accumulators*, small sets of columns that can be
computed from some rows and put together with those of other rows; equal accumulators of several aggregates are kept
once. What cannot be accumulated (DISTINCT, percentiles, and MIN, MAX, lists and bits where rows are retracted) is
computed from the multiset of its values, which `layout` arranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.aggregates.moments import LOST, let, moments, spread, untamed
from operators.aggregates.sums import counted, narrowed, sum_accumulators, total_text
from operators.columns import duckdb_type
from operators.fingerprint import DUCKDB_TEXT
from operators.names import WEIGHT
from operators.sql_text import comma


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSpec:
    """An aggregate over columns of the input.

    `function` is a name of `AGGREGATES`; COUNT without arguments counts rows. `filter` is the position of a BOOLEAN
    column: only rows where it is true are taken in. `constants` are literal arguments as DuckDB text: the separator of
    LISTAGG; the percentages of PERCENTILE; for JSON_ARRAYAGG and JSON_OBJECTAGG, whose argument is a ROW of key and
    value, a template that writes {0} as JSON and, where NULL is listed, the text of it.
    The type of the answer is that of the operator's output column.
    """

    function: str
    arguments: tuple[int, ...] = ()
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = field(default=(), metadata=DUCKDB_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction:
    """An aggregate function: the accumulators it keeps, and its answer from their columns, one list each. `version` is
    raised where a mend changes these so that accumulators from before would be wrong, `floating` is what it is raised
    to where the answer is a floating-point number."""

    accumulators: Callable[[Argument], tuple[Accumulator, ...]]
    finish: Callable[[Argument, Sequence[Sequence[str]], pa.DataType], str]
    version: int = 1
    floating: int = 1


def _count_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CAST({columns[0][0]} AS {duckdb_type(type_)})"


def _sum_accumulators(argument: Argument) -> tuple[Accumulator, ...]:
    return sum_accumulators(argument) if argument.append else (*sum_accumulators(argument), counted(argument))


def _sum_finish(argument: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    value = total_text(argument, columns if argument.append else columns[:-1])
    # The total of integers is kept as BIGINT, around which it has been wrapped already.
    narrower = pa.types.is_integer(type_) and type_ != pa.int64()
    text = narrowed(value, type_) if narrower else f"TRY_CAST({value} AS {duckdb_type(type_)})"
    return text if argument.append else f"CASE WHEN {columns[-1][0]} > 0 THEN {text} END"


def _avg_accumulators(argument: Argument) -> tuple[Accumulator, ...]:
    return *sum_accumulators(argument), counted(argument)


def _avg_finish(argument: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    """Integers are divided toward zero, decimals rounded half up at the scale of the answer."""
    assert argument.type is not None
    value, count = total_text(argument, columns[:-1]), columns[-1][0]
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


def _deviation_accumulators(argument: Argument) -> tuple[Accumulator, ...]:
    kept = counted(argument), moments(argument)
    if not pa.types.is_floating(argument.type):
        return kept
    return (*kept, counted(argument, untamed(argument.text)))


def _deviation(*, sample: bool, root: bool) -> AggregateFunction:
    least = 1 if sample else 0

    def finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
        (count,), (total, squares), *wild = columns
        parts = spread(count, total, squares)
        apart = f"({parts[0]} + {parts[1]}) + ({parts[2]} + {parts[3]})"
        apart = let("apart", apart, f"CASE WHEN apart > {LOST} * {parts[0]} THEN apart ELSE 0 END")
        text = f"({apart}) / (CAST({count} AS DOUBLE) * ({count} - {least}))"
        if pa.types.is_integer(type_):
            text = _cut_off(count, parts, least, text)
        text = f"TRUNC(SQRT({text}))" if root and pa.types.is_integer(type_) else f"SQRT({text})" if root else text
        if wild:
            text = f"CASE WHEN {wild[0][0]} > 0 THEN CAST('NaN' AS DOUBLE) ELSE {text} END"
        # What is out of the range of the type is NULL, as in Flink.
        return f"CASE WHEN {count} > {least} THEN TRY_CAST({text} AS {duckdb_type(type_)}) END"

    return AggregateFunction(accumulators=_deviation_accumulators, finish=finish, version=2)


def _cut_off(count: str, parts: Sequence[str], least: int, inexact: str) -> str:
    """The whole part of a variance of integers, computed from whole numbers, so that 9 does not become 8.99 and then 8.

    Numbers of up to 30 digits are whole in the `parts` of the `spread`; of larger ones `inexact` is truncated.
    """
    whole = " + ".join(f"CAST({part} AS HUGEINT)" for part in parts)
    exact = f"({whole}) // (CAST({count} AS HUGEINT) * ({count} - {least}))"
    # GREATEST ignores NULL, so the condition is outside of it.
    return f"GREATEST(COALESCE(CAST(TRY({exact}) AS DOUBLE), TRUNC({inexact})), 0)"


def _kept(argument: Argument, function: str, merge: str, *conditions: str) -> Accumulator:
    """An accumulator of one column of the argument's type that one DuckDB aggregate, which passes NULL over, both
    creates and combines."""
    assert argument.type is not None
    return Accumulator(
        create=(argument.call(function, argument.text, *conditions),),
        combine=(f"{function}({{0}})",),
        merge=(merge,),
        types=(argument.type,),
    )


def _as_is(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CAST({columns[0][0]} AS {duckdb_type(type_)})"


def separator_of(constants: Sequence[str]) -> str:
    """Return the separator of LISTAGG, as DuckDB text."""
    return constants[0] if constants else "','"


def json_item(constants: Sequence[str], value: str) -> str:
    """Return the DuckDB text that writes `value` as an item of JSON_ARRAYAGG; NULL where it is left out."""
    written, *nulls = (text.format(value) for text in constants)
    return f"COALESCE({comma([written, *nulls])})" if nulls else written


def _listed(argument: Argument) -> tuple[Accumulator, ...]:
    return (_texts(argument, argument.text, separator_of(argument.constants)),)


def _json_listed(argument: Argument) -> tuple[Accumulator, ...]:
    return (_texts(argument, json_item(argument.constants, argument.text), "','"),)


def _json_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CAST('[' || COALESCE({columns[0][0]}, '') || ']' AS {duckdb_type(type_)})"


def _texts(argument: Argument, item: str, separator: str) -> Accumulator:
    """An accumulator of one text, the concatenated items."""
    literal = separator.replace("{", "{{").replace("}", "}}")
    return Accumulator(
        create=(f"STRING_AGG({item}, {separator}{argument.order}){argument.where()}",),
        combine=(f"STRING_AGG({{0}}, {literal})",),
        merge=(f"COALESCE({{a0}} || {literal} || {{b0}}, {{a0}}, {{b0}})",),
        types=(pa.string(),),
    )


def _collected(argument: Argument) -> tuple[Accumulator, ...]:
    accumulator = Accumulator(
        create=(f"LIST({argument.text}{argument.order}){argument.where()}",),
        combine=("FLATTEN(LIST({0}) FILTER (WHERE {0} IS NOT NULL))",),
        merge=("CASE WHEN {a0} IS NULL THEN {b0} WHEN {b0} IS NULL THEN {a0} ELSE LIST_CONCAT({a0}, {b0}) END",),
        types=(pa.list_(argument.type),),
    )
    return (accumulator,)


def _object_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CAST('{{' || COALESCE({columns[0][0]}, '') || '}}' AS {duckdb_type(type_)})"


def _multiset_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    """A map from each value to its count, from the stored entries."""
    return f"CAST(COALESCE(map_from_entries({columns[0][0]}), MAP {{}}) AS {duckdb_type(type_)})"


def _quantiles(argument: Argument) -> tuple[Accumulator, ...]:
    """The percentiles of the rows of one frame, which are never combined with others."""
    percentages = comma(f"CAST({text} AS DOUBLE)" for text in argument.constants)
    accumulator = Accumulator(
        create=(f"QUANTILE_CONT(CAST({argument.text} AS DOUBLE), [{percentages}]){argument.where()}",),
        combine=("ANY_VALUE({0})",),
        merge=("COALESCE({b0}, {a0})",),
        types=(pa.list_(pa.float64()),),
    )
    return (accumulator,)


def _quantiles_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    first = f"{columns[0][0]}[1]"
    return f"CASE WHEN {first} IS NOT NULL THEN {columns[0][0]} END" if pa.types.is_list(type_) else first


def _parities(argument: Argument) -> tuple[Accumulator, ...]:
    """The bits that an odd number of values have, and the number of values: to retract a value is to add it again."""
    odd = () if argument.append else (f"{WEIGHT} % 2 <> 0",)
    return (_kept(argument, "BIT_XOR", "COALESCE(XOR({a0}, {b0}), {a0}, {b0})", *odd), counted(argument))


def _parities_finish(_: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
    return f"CASE WHEN {columns[1][0]} > 0 THEN CAST(COALESCE({columns[0][0]}, 0) AS {duckdb_type(type_)}) END"


def _bits(function: str, operator: str) -> AggregateFunction:
    merge = f"COALESCE({{a0}} {operator} {{b0}}, {{a0}}, {{b0}})"
    return AggregateFunction(accumulators=lambda a: (_kept(a, function, merge),), finish=_as_is)


def _end(argument: Argument, function: str, merge: str) -> tuple[Accumulator, ...]:
    """An accumulator of the first or last value, which `function` finds where NULL counts."""
    assert argument.type is not None
    return (
        Accumulator(
            create=(f"{function}({argument.text}){argument.where(f'{argument.text} IS NOT NULL')}",),
            combine=(f"{function}({{0}}) FILTER (WHERE {{0}} IS NOT NULL)",),
            merge=(merge,),
            types=(argument.type,),
        ),
    )


AGGREGATES: Mapping[str, AggregateFunction] = {
    "COUNT": AggregateFunction(accumulators=lambda a: (counted(a),), finish=_count_finish),
    "SUM": AggregateFunction(accumulators=_sum_accumulators, finish=_sum_finish, floating=2),
    "AVG": AggregateFunction(accumulators=_avg_accumulators, finish=_avg_finish, floating=2),
    "MIN": AggregateFunction(accumulators=lambda a: (_kept(a, "MIN", "LEAST({a0}, {b0})"),), finish=_as_is),
    "MAX": AggregateFunction(accumulators=lambda a: (_kept(a, "MAX", "GREATEST({a0}, {b0})"),), finish=_as_is),
    "APPROX_COUNT_DISTINCT": AggregateFunction(accumulators=lambda a: (counted(a),), finish=_count_finish),
    "VAR_POP": _deviation(sample=False, root=False),
    "VAR_SAMP": _deviation(sample=True, root=False),
    "VARIANCE": _deviation(sample=True, root=False),
    "STDDEV_POP": _deviation(sample=False, root=True),
    "STDDEV_SAMP": _deviation(sample=True, root=True),
    "STDDEV": _deviation(sample=True, root=True),
    "FIRST_VALUE": AggregateFunction(accumulators=lambda a: _end(a, "FIRST", "COALESCE({a0}, {b0})"), finish=_as_is),
    "LAST_VALUE": AggregateFunction(accumulators=lambda a: _end(a, "LAST", "COALESCE({b0}, {a0})"), finish=_as_is),
    "LISTAGG": AggregateFunction(accumulators=_listed, finish=_as_is),
    "ARRAY_AGG": AggregateFunction(accumulators=_collected, finish=_as_is),
    "JSON_ARRAYAGG": AggregateFunction(accumulators=_json_listed, finish=_json_finish),
    "JSON_OBJECTAGG": AggregateFunction(accumulators=_json_listed, finish=_object_finish),
    "COLLECT": AggregateFunction(accumulators=lambda a: (), finish=_multiset_finish),
    "PERCENTILE": AggregateFunction(accumulators=_quantiles, finish=_quantiles_finish),
    "BIT_AND": _bits("BIT_AND", "&"),
    "BIT_OR": _bits("BIT_OR", "|"),
    "BIT_XOR": AggregateFunction(accumulators=_parities, finish=_parities_finish),
}
"""How each aggregate is computed, by its name in SQL."""

EXTREMES = ("MIN", "MAX")
"""Aggregates for which the count of a value does not matter, and that cannot retract a value without its rivals."""

LISTS = ("LISTAGG", "ARRAY_AGG", "JSON_ARRAYAGG")
"""Aggregates that list values: in the order of arrival, or of the values if they come from a multiset."""

BITS = ("BIT_AND", "BIT_OR")
"""Aggregates for which the count of a value does not matter, and that cannot retract a value without all others."""

WHOLES = ("PERCENTILE", "JSON_OBJECTAGG", "COLLECT")
"""Aggregates that need the multiset of all values, even if rows are only added."""

ENDS = ("FIRST_VALUE", "LAST_VALUE")
"""Aggregates for which the count of a value does not matter, and that need an order of arrival."""


def follows_arrival(function: str, *, distinct: bool, append: bool) -> bool:
    """Return whether the answer depends on the order in which rows arrive, which are never retracted (`append`) or may
    be."""
    return function in ENDS or (append and function in LISTS and not distinct)


ARRIVED_END = AggregateFunction(
    accumulators=lambda a: (),
    finish=lambda _, columns, type_: f"CAST(struct_extract({columns[0][0]}, 'v') AS {duckdb_type(type_)})",
)
"""FIRST_VALUE and LAST_VALUE of a value that is stored beside the number of its arrival."""


def arrivals() -> Accumulator:
    """Return the number of rows that have ever come, including retracted ones."""
    return Accumulator(
        create=(f"CAST(COALESCE(SUM(GREATEST({WEIGHT}, 0)), 0) AS BIGINT)",),
        combine=("CAST(COALESCE(SUM({0}), 0) AS BIGINT)",),
        merge=("COALESCE({a0}, 0) + COALESCE({b0}, 0)",),
        types=(pa.int64(),),
    )


REPEATING = (*EXTREMES, *ENDS, *BITS)
"""Aggregates that DISTINCT does not change."""

DEVIATIONS = ("VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV")
"""Aggregates of the distance of values from their mean."""


def version_of(function: str, *, floating: bool) -> int:
    """Return the version of an aggregate, whose answer is a `floating`-point number or not; that of other functions of
    OVER is that of the operator."""
    if function not in AGGREGATES:
        return 1
    found = AGGREGATES[function]
    return max(found.version, found.floating) if floating else found.version


WRITES_JSON = ("JSON_ARRAYAGG", "JSON_OBJECTAGG")
"""Aggregates whose first constant is DuckDB text that follows from the type of the argument."""


def semantic_constants(function: str, constants: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of an aggregate's constants that belong to its meaning, not to its computation."""
    return constants[1:] if function in WRITES_JSON else constants


def refusal(function: str, *, append: bool, merged: bool = False) -> str | None:
    """Return why an aggregate cannot be computed, or None if it can.

    `append` says that its rows are never retracted, `merged` that its partials are combined in any order.
    """
    if function not in AGGREGATES:
        return f"{function} is not computed"
    if function in ENDS and merged and not append:
        return f"{function} has no totals that could be merged in any order where rows may be retracted"
    return None
