"""Answers that are computed from all values of a set, in their order: lists, percentiles, bits and objects of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec, json_item, separator_of
from operators.sql_text import comma, of_those


@dataclass(frozen=True, slots=True)
class ValueList:
    """A list, a percentile or other answer from all values of a set, kept in the accumulator `name`.

    `text` computes it from columns v and n, a value and how often it is there, and from the columns `beside` (text by
    name) of the values of a group in their order: {order} stands for their OVER clause, {all} for one without order.
    """

    text: str
    name: str
    beside: Mapping[str, str] = field(default_factory=dict)


def lists_nulls(aggregate: AggregateSpec) -> bool:
    """Return whether NULL is among the values."""
    return aggregate.function == "ARRAY_AGG" or (aggregate.function == "JSON_ARRAYAGG" and len(aggregate.constants) > 1)


def list_type(aggregate: AggregateSpec, value: pa.DataType) -> pa.DataType:
    """Return the type of the answer from values of the type `value`, as it is kept."""
    match aggregate.function:
        case "ARRAY_AGG":
            return pa.list_(value)
        case "PERCENTILE":
            return pa.list_(pa.float64())
        case "COLLECT":
            return pa.list_(pa.struct([("k", value), ("n", pa.int32())]))
        case "BIT_AND" | "BIT_OR":
            return value
        case _:
            return pa.string()


def value_list(aggregate: AggregateSpec, distinct: bool, name: str) -> ValueList:
    """Return how an answer is computed from the values of a set, each counted once (`distinct`) or as often as it is
    there; `name` is the accumulator that it is kept in."""
    match aggregate.function:
        case "PERCENTILE":
            times, names = ("1", ("upto_once", "total_once")) if distinct else ("n", ("upto", "total"))
            beside = {names[0]: f"SUM({times}) {{order}}", names[1]: f"SUM({times}) {{all}}"}
            percentiles = comma(_percentile_text(text, *names) for text in aggregate.constants)
            return ValueList(f"[{percentiles}]", name, beside)
        case "BIT_AND" | "BIT_OR":
            return ValueList(f"{aggregate.function}(v)", name)
        case "COLLECT":
            times = "1" if distinct else "n"
            return ValueList(f"LIST(struct_pack(k := v, n := CAST({times} AS INTEGER)) ORDER BY v)", name)
        case "JSON_OBJECTAGG":
            key = "struct_extract(v, 'f0')"
            member = f"CAST(to_json({key}) AS VARCHAR) || ':' || {json_item(aggregate.constants, 'v')}"
            beside = {"last_of_key": f"{key} IS DISTINCT FROM LEAD({key}) {{order}}"}
            return ValueList(f"STRING_AGG({member}, ',' ORDER BY {key}) FILTER (WHERE last_of_key)", name, beside)
        case _:
            return ValueList(_list_text(aggregate, distinct), name)


def _percentile_text(percentage: str, upto: str, total: str) -> str:
    """The percentile by linear interpolation between the two values next to its place, as Flink computes it.

    `upto` and `total` are the columns that say how many values there are up to each one, and in all.
    """
    place = f"(CAST({percentage} AS DOUBLE) * ({total} - 1))"
    below, above = (of_those("MIN", "CAST(v AS DOUBLE)", f"{upto} > {side}({place})") for side in ("FLOOR", "CEIL"))
    between = f"ANY_VALUE(CEIL({place}) - {place}) * {below} + ANY_VALUE({place} - FLOOR({place})) * {above}"
    return f"CASE WHEN {below} = {above} THEN {below} ELSE {between} END"


def _list_text(aggregate: AggregateSpec, distinct: bool) -> str:
    """The DuckDB aggregate that lists the values of a set, each once or as often as it is there."""
    order = "ORDER BY v ASC NULLS LAST"
    if aggregate.function == "ARRAY_AGG":
        return f"LIST(v {order})" if distinct else f"FLATTEN(LIST(LIST_RESIZE([v], n, v) {order}))"
    item, separator = "v", separator_of(aggregate.constants)
    if aggregate.function == "JSON_ARRAYAGG":
        item, separator = json_item(aggregate.constants, "v"), "','"
    value = item if distinct else f"{item} || REPEAT({separator} || {item}, n - 1)"
    return f"STRING_AGG({value}, {separator} {order})"
