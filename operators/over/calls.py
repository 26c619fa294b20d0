"""The calls of OVER windows, and the DuckDB text of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.aggregates.functions import AGGREGATES, LISTS, REPEATING, AggregateFunction, refusal
from operators.columns import duckdb_type
from operators.fingerprint import DUCKDB_TEXT
from operators.names import ORDER_NUMBER, ORDER_TIME, column, columns
from operators.over.frame_values import over_values, reads_values
from operators.sql_text import all_named, comma, every, named, over


@dataclass(frozen=True, slots=True)
class Frame:
    """ROWS or RANGE BETWEEN `preceding` PRECEDING AND `following` FOLLOWING: rows, or ms; None = UNBOUNDED.

    Less than 0 is the other side of the current row. Raises ValueError for an unbounded frame that ends before it.
    """

    rows: bool
    preceding: int | None
    following: int = 0

    def __post_init__(self) -> None:
        if self.preceding is None and self.following < 0:
            raise ValueError("a frame of all rows ends with the current row or behind it")

    @property
    def behind(self) -> int:
        """The distance to the first row of a bounded frame, before the current row."""
        return max(0, self.preceding or 0)

    @property
    def ahead(self) -> int:
        """The distance to the last row of the frame, after the current row."""
        return max(0, self.following)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCallSpec:
    """An aggregate over a frame (any of `AGGREGATES`), NTH_VALUE, or one of `NUMBERINGS` or `NEIGHBOURS`, whose frame
    is not read.

    `constants` are literal arguments as DuckDB text: the offset and default of LAG and LEAD, the number of NTH_VALUE.
    """

    function: str
    frame: Frame
    arguments: tuple[int, ...] = ()
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = field(default=(), metadata=DUCKDB_TEXT)

    @property
    def _offset(self) -> int:
        """The distance of the row that LAG and LEAD read."""
        return int(self.constants[0]) if self.constants else 1

    @property
    def rows_behind(self) -> int:
        """The number of rows before the current one that are read, in a bounded frame of rows."""
        return self._offset if self.function == "LAG" else self.frame.behind if self._in_rows else 0

    @property
    def rows_ahead(self) -> int:
        """The number of rows after the current one that are read."""
        return self._offset if self.function == "LEAD" else self.frame.ahead if self._in_rows else 0

    @property
    def time_ahead(self) -> int:
        """The ms after the current row that are read."""
        return self.frame.ahead if not self._in_rows and self.function not in NEIGHBOURS else 0

    @property
    def counts_once(self) -> bool:
        """Whether only the first of equal values counts."""
        distinct = self.distinct or self.function == "APPROX_COUNT_DISTINCT"
        return distinct and self.function not in REPEATING

    @property
    def _in_rows(self) -> bool:
        return self.frame.rows and self.function not in NEIGHBOURS


NEIGHBOURS = ("LAG", "LEAD")
"""Functions that read one other row, and no frame."""

NUMBERINGS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
"""Functions that count the rows, or times, up to the current row."""

NOT_AGGREGATES = (*NEIGHBOURS, *NUMBERINGS, "NTH_VALUE")
"""The functions that exist only with OVER."""


def window(frame: Frame, partition: Sequence[int]) -> str:
    """Return the text of an OVER clause, with a blank before it.

    >>> window(Frame(rows=True, preceding=2), partition=[0])
    ' OVER (PARTITION BY c0 ORDER BY _n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)'
    """
    start = "UNBOUNDED PRECEDING" if frame.preceding is None else _edge(-frame.preceding)
    order, unit = (ORDER_NUMBER, "ROWS") if frame.rows else (ORDER_TIME, "RANGE")
    return f" {over(columns(partition), [order], f'{unit} BETWEEN {start} AND {_edge(frame.following)}')}"


def _edge(offset: int) -> str:
    """An end of a frame, so far behind the current row."""
    return f"{abs(offset)} {'FOLLOWING' if offset > 0 else 'PRECEDING'}" if offset else "CURRENT ROW"


def argument(call: OverCallSpec, schema: pa.Schema, clause: str = "", first: str | None = None) -> Argument:
    """Return what the aggregate of `call` is computed from, in the window of an OVER `clause`.

    Where a value counts once, `first` is the condition for the row that brings it; without one DuckDB tells.
    """
    condition = first if call.counts_once else None
    text, type_ = None, None
    if call.arguments:
        text, type_ = column(call.arguments[0]), schema.field(call.arguments[0]).type
    return Argument(
        x=text,
        type=type_,
        filter=every([condition, None if call.filter is None else column(call.filter)]) or None,
        append=True,
        constants=call.constants,
        over=clause,
        distinct=call.counts_once and first is None,
        order=_ties(call) if clause else "",
    )


_IN_ORDER = ("FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", *LISTS)
"""Functions of rows in the order of arrival."""


def _ties(call: OverCallSpec) -> str:
    """The order of rows of one time, which a frame of times leaves open, for the functions that ask for it."""
    ordered = not call.frame.rows and not call.counts_once and call.function in _IN_ORDER
    return f" ORDER BY {ORDER_NUMBER}" if ordered else ""


def function_of(call: OverCallSpec) -> AggregateFunction:
    """Return how the aggregate of `call` is computed in its frame. Raises ValueError if it is no aggregate."""
    if reason := refusal(call.function, append=True):
        raise ValueError(reason)
    if reads_values(call.function, counts_once=call.counts_once, bounded=call.frame.preceding is not None):
        return over_values(call.function)
    return AGGREGATES[call.function]


def starts(call: OverCallSpec, accumulator: Accumulator, given: Argument) -> tuple[str, ...]:
    """Return the texts that compute the columns of `accumulator` in a window, in which a first or last value is looked
    up."""
    if call.function in ("FIRST_VALUE", "LAST_VALUE"):
        value = given.text if given.filter is None else f"CASE WHEN {given.filter} THEN {given.text} END"
        return (f"{call.function}({value}{given.order} IGNORE NULLS){given.over}",)
    return accumulator.create


def bounded(
    call: OverCallSpec, schema: pa.Schema, partition: Sequence[int], type_: pa.DataType, prefix: str
) -> tuple[list[str], str]:
    """Return the items to compute in bounded windows, whose names begin with `prefix`, and the answer of `call` from
    them."""
    clause, first = window(call.frame, partition), f"{prefix}0"
    if call.function in NEIGHBOURS:
        given = comma([column(call.arguments[0]), *call.constants])
        text = f"{call.function}({given}) {over(columns(partition), [ORDER_NUMBER])}"
        return [named(text, first)], f"CAST({first} AS {duckdb_type(type_)})"
    if call.function == "NTH_VALUE":
        text = f"NTH_VALUE({comma([column(call.arguments[0]), call.constants[0]])}{_ties(call)}){clause}"
        return [named(text, first)], f"CAST({first} AS {duckdb_type(type_)})"
    taken = argument(call, schema, clause)
    function = function_of(call)
    items: list[str] = []
    groups = []
    for accumulator in function.accumulators(taken):
        groups.append([f"{prefix}{len(items) + i}" for i in range(len(accumulator.types))])
        items += all_named(starts(call, accumulator, taken), groups[-1])
    return items, function.finish(taken, groups, type_)
