"""Aggregates of groups without a window, and the calls that every kind of aggregation shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.over.calls import Frame, OverCallSpec
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions
from service.plan.types import DataType

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over columns of the input. `filter` is the position of a BOOLEAN column (FILTER (WHERE ...));
    `constants` are literal arguments as DuckDB text, such as LISTAGG's separator."""

    function: str
    arguments: tuple[int, ...]
    type: DataType
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OverCall:
    """An aggregate (or ROW_NUMBER, LAG, LEAD, FIRST_VALUE, LAST_VALUE) over a frame; `constants` are literal arguments,
    such as LAG's offset."""

    function: str
    arguments: tuple[int, ...]
    type: DataType
    frame: Frame
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = ()

    @property
    def spec(self) -> OverCallSpec:
        """What its kernel computes."""
        return OverCallSpec(
            function=self.function,
            frame=self.frame,
            arguments=self.arguments,
            distinct=self.distinct,
            filter=self.filter,
            constants=self.constants,
        )


def read_by(calls: Sequence[AggregateCall] | Sequence[OverCall]) -> Iterator[int]:
    """Yield the positions that `calls` read: their arguments and filters."""
    for call in calls:
        yield from call.arguments
        if call.filter is not None:
            yield call.filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Aggregates per key without a window; `ttl` in ms, 0 = forever. Fields: the keys, then the aggregates.
    Without keys there is one group, which exists from the start only once a row has come, as in Flink."""

    input: Node
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    ttl: int = 0
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, (*self.keys, *read_by(self.aggregates)))
        check(len(self.fields) == len(self.keys) + len(self.aggregates), self, "has the keys, then the aggregates")
