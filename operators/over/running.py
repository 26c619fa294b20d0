"""The calls of unbounded frames: what is kept of each key, and how a row is answered from it and from what has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument, PlacedAccumulator
from operators.aggregates.sums import counted
from operators.columns import duckdb_type
from operators.names import ORDER_NUMBER, ORDER_TIME, PREVIOUS, column, columns
from operators.over.calls import OverCallSpec, argument, function_of, starts, window
from operators.sql_text import over

_EVERY = Argument(x=None, type=None, filter=None, append=True)
"""All rows, counted."""


class RunningCall(NamedTuple):
    """A call of an unbounded frame, as DuckDB text.

    `kept` are its accumulators with the names of their columns; `starts` compute those columns from the rows of a key,
    `windows` from the rows up to the end of each row's frame; `answer` reads them. The column `choice` says which rows
    count: `chooses` computes it, from what is kept of the key too if it `reads_kept`; empty where another does.
    """

    kept: tuple[PlacedAccumulator, ...]
    starts: tuple[str, ...]
    windows: tuple[str, ...]
    answer: str
    choice: str = ""
    chooses: str = ""
    reads_kept: bool = False


def running(
    call: OverCallSpec, schema: pa.Schema, partition: Sequence[int], type_: pa.DataType, prefix: str, choice: str
) -> RunningCall:
    """Return how `call` is computed; the columns that it keeps begin with `prefix`, and `choice` tells the rows that
    count."""
    clause, by = window(call.frame, partition), columns(partition)
    plain: tuple[Accumulator, ...]
    windowed: tuple[Accumulator, ...]
    match call.function:
        case "ROW_NUMBER":
            plain, windowed = (counted(_EVERY),), (counted(_in_window(_EVERY, clause)),)
            answer = "CAST({0} AS BIGINT)"
        case "RANK":
            earlier = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP"
            before = f" {over(by, [ORDER_TIME], earlier)}"
            plain, windowed = (counted(_EVERY),), (counted(_in_window(_EVERY, before)),)
            answer = "CAST({0} + 1 AS BIGINT)"
        case "DENSE_RANK":
            first = Argument(x=None, type=None, filter=choice, append=True)
            upto = f" {over(by, [ORDER_TIME])}"
            plain, windowed = (counted(first),), (counted(_in_window(first, upto)),)
            chooses = f"ROW_NUMBER() {over([*by, ORDER_TIME], [ORDER_NUMBER])} = 1"
            return _placed(plain, windowed, "CAST({0} AS BIGINT)", prefix)._replace(choice=choice, chooses=chooses)
        case "NTH_VALUE":
            plain = counted(_EVERY), _only(call, schema, choice, "")
            windowed = counted(_in_window(_EVERY, clause)), _only(call, schema, choice, clause)
            number = f"COALESCE({PREVIOUS}{prefix}0, 0) + ROW_NUMBER() {over(by, [ORDER_NUMBER])}"
            made = _placed(plain, windowed, f"CAST({{1}} AS {duckdb_type(type_)})", prefix)
            return made._replace(choice=choice, chooses=f"{number} = {call.constants[0]}", reads_kept=True)
        case _:
            return _aggregated(call, schema, clause, type_, prefix, choice)
    return _placed(plain, windowed, answer, prefix)


def _aggregated(
    call: OverCallSpec, schema: pa.Schema, clause: str, type_: pa.DataType, prefix: str, choice: str
) -> RunningCall:
    function = function_of(call)
    plain, given = argument(call, schema, "", choice), argument(call, schema, clause, choice)
    placed = _named(function.accumulators(plain), prefix)
    windows = [text for accumulator in function.accumulators(given) for text in starts(call, accumulator, given)]
    return RunningCall(
        kept=placed,
        starts=tuple(text for each in placed for text in each.accumulator.create),
        windows=tuple(windows),
        answer=function.finish(plain, [list(each.names) for each in placed], type_),
        choice=choice if call.counts_once else "",
    )


def _in_window(given: Argument, clause: str) -> Argument:
    return Argument(x=given.x, type=given.type, filter=given.filter, append=True, over=clause)


def _only(call: OverCallSpec, schema: pa.Schema, choice: str, clause: str) -> Accumulator:
    """The value of the one row that is chosen."""
    place = call.arguments[0]
    return Accumulator(
        create=(f"ANY_VALUE({column(place)}) FILTER (WHERE {choice}){clause}",),
        combine=("ANY_VALUE({0})",),
        merge=("COALESCE({a0}, {b0})",),
        types=(schema.field(place).type,),
    )


def _placed(plain: Sequence[Accumulator], windowed: Sequence[Accumulator], answer: str, prefix: str) -> RunningCall:
    placed = _named(plain, prefix)
    return RunningCall(
        kept=placed,
        starts=tuple(text for each in plain for text in each.create),
        windows=tuple(text for each in windowed for text in each.create),
        answer=answer.format(*(name for each in placed for name in each.names)),
    )


def _named(accumulators: Sequence[Accumulator], prefix: str) -> tuple[PlacedAccumulator, ...]:
    placed: list[PlacedAccumulator] = []
    count = 0
    for accumulator in accumulators:
        placed.append(
            PlacedAccumulator(accumulator, tuple(f"{prefix}{count + i}" for i in range(len(accumulator.types))))
        )
        count += len(accumulator.types)
    return tuple(placed)
