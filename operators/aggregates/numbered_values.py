"""Aggregates in the order of arrival whose partials may be put together in any order.

The slices of a window follow each other in time, not in the order in which rows arrived. So each value is kept beside
the number of its row: the first value is that of the least number, and a list is put in order when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.aggregates.functions import ARRIVED_END, ENDS, AggregateFunction, json_item, separator_of
from operators.columns import duckdb_type


def by_number(function: str) -> AggregateFunction:
    """Return how `function`, of `ENDS` or `LISTS`, is computed from rows with numbers."""
    if function in ENDS:
        return AggregateFunction(accumulators=lambda a: (_end(a, function),), finish=ARRIVED_END.finish)
    return AggregateFunction(accumulators=lambda a: (_list(a, function),), finish=_finish(function))


def _end(argument: Argument, function: str) -> Accumulator:
    extreme, merge = ("MIN", "{a0}, {b0}") if function == "FIRST_VALUE" else ("MAX", "{b0}, {a0}")
    return Accumulator(
        create=(argument.call(extreme, _numbered(argument, argument.text), f"{argument.text} IS NOT NULL"),),
        combine=(f"{extreme}({{0}})",),
        merge=(f"COALESCE({merge})",),
        types=(pa.struct([("s", pa.int64()), ("v", argument.type)]),),
    )


def _list(argument: Argument, function: str) -> Accumulator:
    item, type_ = argument.text, argument.type
    if function == "JSON_ARRAYAGG":
        item, type_ = json_item(argument.constants, item), pa.string()
    listed = argument.where() if function == "ARRAY_AGG" else argument.where(f"{item} IS NOT NULL")
    return Accumulator(
        create=(f"LIST({_numbered(argument, item)}){listed}",),
        combine=("FLATTEN(LIST({0}) FILTER (WHERE {0} IS NOT NULL))",),
        merge=("CASE WHEN {a0} IS NULL THEN {b0} WHEN {b0} IS NULL THEN {a0} ELSE LIST_CONCAT({a0}, {b0}) END",),
        types=(pa.list_(pa.struct([("s", pa.int64()), ("v", type_)])),),
    )


def _numbered(argument: Argument, value: str) -> str:
    return f"struct_pack(s := {argument.number}, v := {value})"


def _finish(function: str) -> Callable[[Argument, Sequence[Sequence[str]], pa.DataType], str]:
    read = _READ[function]

    def finish(argument: Argument, columns: Sequence[Sequence[str]], type_: pa.DataType) -> str:
        values = f"LIST_TRANSFORM(LIST_SORT({columns[0][0]}), lambda x: struct_extract(x, 'v'))"
        return f"CAST({read(argument, values)} AS {duckdb_type(type_)})"

    return finish


_READ: Mapping[str, Callable[[Argument, str], str]] = {
    "ARRAY_AGG": lambda _, values: values,
    "LISTAGG": lambda argument, values: f"ARRAY_TO_STRING({values}, {separator_of(argument.constants)})",
    "JSON_ARRAYAGG": lambda _, values: f"'[' || COALESCE(ARRAY_TO_STRING({values}, ','), '') || ']'",
}
"""The text of an answer, by the name of its aggregate, from the text of its values in their order."""
