"""Rows by their order: Top-N, LIMIT and ORDER BY a time attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.ranking.ranking import EVERY_RANK, OrderBy, RankFunction, Ranking
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions

if TYPE_CHECKING:
    from service.plan.nodes import Node


MOST = 2**31 - 1
"""The highest rank that counts as a bound: the rows up to it are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopN:
    """The rows of each `partition` whose rank is within `first` to `last`, both inclusive; `last` is None until a
    condition on the rank bounds it. Fields: the input's, then the rank if it is `shown`.

    `window_time` is the position of the windows' time where the partitions are windows: each is then answered once,
    when it closes. Where rows tie, the one that arrived earlier is the first; the later with `latest_first`. `buckets`
    are those of NTILE.
    """

    input: Node
    partition: tuple[int, ...]
    order: tuple[OrderBy, ...]
    fields: tuple[Field, ...]
    function: RankFunction = RankFunction.ROW_NUMBER
    first: int = 1
    last: int | None = None
    latest_first: bool = False
    window_time: int | None = None
    shown: bool = True
    buckets: int = 0
    ttl: int = 0
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        time = () if self.window_time is None else (self.window_time,)
        check_positions(self, self.input.fields, (*self.partition, *(key.column for key in self.order), *time))
        check(
            len(self.fields) == len(self.input.fields) + self.shown,
            self,
            "has the columns of its input, then the rank if it is shown",
        )

    def ranks_like(self, below: TopN) -> bool:
        """Return whether this and the Top-N `below` show ranks of the same rows, from the first, in one order."""
        both = (self, below)
        if not all(each.shown and each.first == 1 and each.window_time is None for each in both):
            return False
        mine, theirs = ((each.partition, each.order, each.latest_first) for each in both)
        return mine == theirs

    @property
    def ranking(self) -> Ranking:
        """What its kernel computes."""
        return Ranking(
            partition=self.partition,
            order=self.order,
            function=self.function,
            first=self.first,
            last=EVERY_RANK if self.last is None else self.last,
            latest_first=self.latest_first,
            shown=self.shown,
            buckets=self.buckets,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSort:
    """The rows of an append-only input in the order of a time attribute, ascending, then of the rest of `order`."""

    input: Node
    order: tuple[OrderBy, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, (key.column for key in self.order))
        check(bool(self.order) and not self.order[0].descending, self, "begins with a time attribute, ascending")

    @property
    def time(self) -> int:
        """The position of the time attribute."""
        return self.order[0].column

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of its input."""
        return self.input.fields
