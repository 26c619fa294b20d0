"""Aggregates of OVER windows that are read from a list of all values of the frame.

A multiset, an object of JSON, and a percentile of an unbounded frame are; of DISTINCT values in a frame that rows leave
again also lists, bits and deviations. Such lists are in the order of their values: that of arrival is lost where equal
ones count once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.aggregates.functions import (
    AGGREGATES,
    DEVIATIONS,
    WHOLES,
    AggregateFunction,
    json_item,
    separator_of,
)
from operators.aggregates.moments import let, moments_of_list, tamed
from operators.columns import duckdb_type
from operators.sql_text import comma

_DISTINCT_ONES = ("LISTAGG", "ARRAY_AGG", "BIT_XOR", "PERCENTILE", *DEVIATIONS)
"""Aggregates that DuckDB does not compute as we do where equal values of a bounded frame count once."""


def reads_values(function: str, *, counts_once: bool, bounded: bool) -> bool:
    """Return whether `function` is read from the list of all values of a frame."""
    if function in WHOLES and not (function == "PERCENTILE" and bounded):
        return True
    return counts_once and bounded and function in _DISTINCT_ONES


def over_values(function: str) -> AggregateFunction:
    """Return how `function` is computed from the list of all values of a frame."""
    nulls = function == "ARRAY_AGG"
    return AggregateFunction(accumulators=lambda a: (_values(a, nulls=nulls),), finish=_finish(function))


def _values(argument: Argument, *, nulls: bool) -> Accumulator:
    present = () if nulls else (f"{argument.text} IS NOT NULL",)
    return Accumulator(
        create=(f"LIST({argument.taken(argument.text)}){argument.where(*present)}",),
        combine=("FLATTEN(LIST({0}) FILTER (WHERE {0} IS NOT NULL))",),
        merge=("CASE WHEN {a0} IS NULL THEN {b0} WHEN {b0} IS NULL THEN {a0} ELSE LIST_CONCAT({a0}, {b0}) END",),
        types=(pa.list_(argument.type),),
    )


def _finish(function: str) -> Callable[[Argument, Sequence[Sequence[str]], pa.DataType], str]:
    read = _DEVIATION_OF.get(function) or _READ[function]

    def finish(argument: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
        return read(argument, columns[0][0], type_)

    return finish


def _sorted_values(_: Argument, values: str, type_: pa.DataType) -> str:
    return f"CAST({_sorted(values)} AS {duckdb_type(type_)})"


def _sorted(values: str) -> str:
    return f"LIST_SORT({values}, 'ASC', 'NULLS LAST')"


def _text(argument: Argument, values: str, type_: pa.DataType) -> str:
    return f"CAST(ARRAY_TO_STRING({_sorted(values)}, {separator_of(argument.constants)}) AS {duckdb_type(type_)})"


def _odd_bits(_: Argument, values: str, type_: pa.DataType) -> str:
    return f"CAST(LIST_AGGREGATE({values}, 'bit_xor') AS {duckdb_type(type_)})"


def _multiset(_: Argument, values: str, type_: pa.DataType) -> str:
    return f"CAST(COALESCE(LIST_AGGREGATE({values}, 'histogram'), MAP {{}}) AS {duckdb_type(type_)})"


def _percentiles(argument: Argument, values: str, type_: pa.DataType) -> str:
    rows = _sorted(f"LIST_TRANSFORM({values}, lambda x: CAST(x AS DOUBLE))")
    found = [_percentile(text, rows) for text in argument.constants]
    return f"CASE WHEN LEN({values}) > 0 THEN {f'[{comma(found)}]' if pa.types.is_list(type_) else found[0]} END"


def _percentile(percentage: str, rows: str) -> str:
    """The percentile by linear interpolation between the two values next to its place, as of a group."""
    place = f"(CAST({percentage} AS DOUBLE) * (LEN({rows}) - 1))"
    below, above = (f"{rows}[CAST({side}({place}) AS BIGINT) + 1]" for side in ("FLOOR", "CEIL"))
    between = f"(CEIL({place}) - {place}) * {below} + ({place} - FLOOR({place})) * {above}"
    return f"CASE WHEN {below} = {above} THEN {below} ELSE {between} END"


def _members(argument: Argument, values: str, type_: pa.DataType) -> str:
    """Of the values of one key the greatest, as an object in the order of the keys."""
    rows = _sorted(values)
    key, next_key = "struct_extract(v, 'f0')", f"struct_extract({rows}[i + 1], 'f0')"
    last = f"LIST_FILTER({rows}, lambda v, i: {key} IS DISTINCT FROM {next_key})"
    member = f"CAST(to_json({key}) AS VARCHAR) || ':' || {json_item(argument.constants, 'v')}"
    listed = f"ARRAY_TO_STRING(LIST_TRANSFORM({last}, lambda v: {member}), ',')"
    return f"CAST('{{' || COALESCE({listed}, '') || '}}' AS {duckdb_type(type_)})"


def _deviation(function: str) -> Callable[[Argument, str, pa.DataType], str]:
    def read(argument: Argument, values: str, type_: pa.DataType) -> str:
        doubles = f"LIST_TRANSFORM({values}, lambda x: CAST(x AS DOUBLE))"
        tame = f"LIST_FILTER({doubles}, lambda x: {tamed('x')})"
        total, squares = moments_of_list("tame")
        columns = [[f"COALESCE(LEN({values}), 0)"], ["of_tame.total", "of_tame.squares"]]
        if pa.types.is_floating(argument.type):
            columns.append([f"(LEN({values}) - LEN(tame))"])
        answer = AGGREGATES[function].finish(argument, columns, type_)
        return let("tame", tame, let("of_tame", f"struct_pack(total := {total}, squares := {squares})", answer))

    return read


_DEVIATION_OF: Mapping[str, Callable[[Argument, str, pa.DataType], str]] = {
    function: _deviation(function) for function in DEVIATIONS
}

_READ: Mapping[str, Callable[[Argument, str, pa.DataType], str]] = {
    "ARRAY_AGG": _sorted_values,
    "LISTAGG": _text,
    "BIT_XOR": _odd_bits,
    "COLLECT": _multiset,
    "PERCENTILE": _percentiles,
    "JSON_OBJECTAGG": _members,
}
