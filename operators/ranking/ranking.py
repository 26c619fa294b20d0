"""The specification of a ranking: a rank function, its groups, the order inside them and the wanted ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from operators.names import column, columns
from operators.sql_text import over

EVERY_RANK = 2**62
"""The last rank where all are wanted, which only windows can answer."""


class RankFunction(Enum):
    """A rank function, by how rows that tie are numbered: 1, 2, 3, 4 or 1, 1, 3, 4 or 1, 1, 2, 3; or where a row stands
    among all of its partition: in which of some buckets of one size, behind which part of the others, within which part
    of all."""

    ROW_NUMBER = "ROW_NUMBER"
    RANK = "RANK"
    DENSE_RANK = "DENSE_RANK"
    NTILE = "NTILE"
    PERCENT_RANK = "PERCENT_RANK"
    CUME_DIST = "CUME_DIST"

    @property
    def of_all(self) -> bool:
        """Whether the answer depends on the rows behind a row, too, so that a bound on it leaves none out."""
        return self not in (RankFunction.ROW_NUMBER, RankFunction.RANK, RankFunction.DENSE_RANK)

    @property
    def type(self) -> pa.DataType:
        """The type of the answer."""
        return pa.float64() if self in (RankFunction.PERCENT_RANK, RankFunction.CUME_DIST) else pa.int64()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy:
    """A column of ORDER BY. As in Flink, NULL is less than any value unless the query says otherwise."""

    column: int
    descending: bool = False
    nulls_first: bool = True

    @property
    def text(self) -> str:
        """The column as DuckDB writes it in ORDER BY."""
        direction = "DESC" if self.descending else "ASC"
        return f"{column(self.column)} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The rows of each `partition` whose rank in `order` is within `first` to `last`, both inclusive.

    Where rows tie, ROW_NUMBER counts the one that arrived earlier first; with `latest_first` the one that arrived
    later, so that the last row of a key is the last of those with the highest time, too. `shown` says whether the rank
    is the last column of the output.
    """

    partition: tuple[int, ...]
    order: tuple[OrderBy, ...]
    last: int
    first: int = 1
    function: RankFunction = RankFunction.ROW_NUMBER
    latest_first: bool = False
    shown: bool = False
    buckets: int = 0

    @property
    def reads_rank(self) -> bool:
        """Whether the answer depends on a row's rank, and not only on whether it is among the first `last`."""
        return self.shown or self.first > 1

    def ordered_whole(self, width: int) -> Ranking:
        """Return the ranking of rows of `width` columns that may be retracted, and so have no order of arrival: those
        that tie are ordered by their other columns, where one of them must be first."""
        if self.function not in (RankFunction.ROW_NUMBER, RankFunction.NTILE):
            return self
        known = {*self.partition, *(key.column for key in self.order)}
        ties = (OrderBy(column=place) for place in range(width) if place not in known)
        return replace(self, order=(*self.order, *ties), latest_first=False)

    def over(self, tie_break: str, *groups: str) -> str:
        """Return the text of the rank of each row among those of its partition and `groups`; `tie_break` orders
        peers."""
        keys = [key.text for key in self.order]
        if self.function in (RankFunction.ROW_NUMBER, RankFunction.NTILE):
            keys.append(tie_break)
        return f"{self.function.value.lower()}({self.buckets or ''}) {over([*columns(self.partition), *groups], keys)}"
