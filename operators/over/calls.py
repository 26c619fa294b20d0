"""The calls of OVER windows, and the DuckDB text of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.aggregates.functions import AGGREGATES, REPEATING, refusal
from operators.columns import duckdb_type, listed


@dataclass(frozen=True, slots=True)
class Frame:
    """ROWS or RANGE BETWEEN `preceding` PRECEDING AND CURRENT ROW: rows, or ms; None = UNBOUNDED."""

    rows: bool
    preceding: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCallSpec:
    """An aggregate over a frame (any of `AGGREGATES`), or ROW_NUMBER or LAG, whose frame is not read.

    `constants` are literal arguments as DuckDB text: LAG's offset and default. DISTINCT needs a bounded frame.
    """

    function: str
    frame: Frame
    arguments: tuple[int, ...] = ()
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = ()

    @property
    def lookback(self) -> int:
        """How many rows before the current one LAG reads."""
        return int(self.constants[0]) if self.constants else 1


TIME = "_t"
"""The column of a row's time in ms, which RANGE frames are ordered by."""

NUMBER = "_n"
"""The column that numbers rows by time, then arrival, for ROWS frames; those that are due from 0 on."""


def partition_by(partition: Sequence[int]) -> str:
    """The PARTITION BY clause of an OVER clause, with a blank behind it, or nothing."""
    return f"PARTITION BY {listed(partition)} " if partition else ""


def window(frame: Frame, partition: Sequence[int]) -> str:
    """The text of an OVER clause."""
    by = partition_by(partition)
    start = "UNBOUNDED" if frame.preceding is None else str(frame.preceding)
    if frame.rows:
        return f" OVER ({by}ORDER BY {NUMBER} ROWS BETWEEN {start} PRECEDING AND CURRENT ROW)"
    return f" OVER ({by}ORDER BY {TIME} RANGE BETWEEN {start} PRECEDING AND CURRENT ROW)"


def argument(call: OverCallSpec, schema: pa.Schema, over: str = "", condition: str | None = None) -> Argument:
    """What the aggregate of `call` is computed from, in a window, under a further condition."""
    conditions = [text for text in (condition, None if call.filter is None else f"c{call.filter}") if text is not None]
    text, type_ = None, None
    if call.arguments:
        text, type_ = f"c{call.arguments[0]}", schema.field(call.arguments[0]).type
    return Argument(
        x=text,
        type=type_,
        filter=" AND ".join(conditions) or None,
        append=True,
        constants=call.constants,
        over=over,
        distinct=call.distinct and call.function not in REPEATING,
    )


def aggregate_of(call: OverCallSpec) -> str:
    """The aggregate that answers `call`: a row's number is how many rows there are up to it."""
    bounded_frame = call.frame.preceding is not None
    if call.function != "ROW_NUMBER" and (
        reason := refusal(call.function, distinct=call.distinct, append=True, over=True, bounded=bounded_frame)
    ):
        raise ValueError(reason)
    return "COUNT" if call.function == "ROW_NUMBER" else call.function


def starts(call: OverCallSpec, accumulator: Accumulator, given: Argument) -> tuple[str, ...]:
    """The texts that compute the columns of `accumulator` in a window, in which a first or last value is looked up."""
    if call.function in ("FIRST_VALUE", "LAST_VALUE"):
        value = given.text if given.filter is None else f"CASE WHEN {given.filter} THEN {given.text} END"
        return (f"{call.function}({value} IGNORE NULLS){given.over}",)
    return accumulator.create


def bounded(
    call: OverCallSpec, schema: pa.Schema, partition: Sequence[int], type_: pa.DataType
) -> tuple[list[str], str]:
    """Texts to compute in bounded windows (to be named {0}, {1}, ...), and the answer of `call` from them."""
    if call.function == "LAG":
        by = partition_by(partition)
        rest = "".join(f", {text}" for text in call.constants)
        return [f"LAG(c{call.arguments[0]}{rest}) OVER ({by}ORDER BY {NUMBER})"], f"CAST({{0}} AS {duckdb_type(type_)})"
    given = argument(call, schema, window(call.frame, partition))
    function = AGGREGATES[aggregate_of(call)]
    texts: list[str] = []
    groups = []
    for accumulator in function.accumulators(given):
        groups.append([f"{{{len(texts) + i}}}" for i in range(len(accumulator.types))])
        texts += starts(call, accumulator, given)
    return texts, function.finish(given, groups, type_)
