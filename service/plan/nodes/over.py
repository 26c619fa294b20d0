"""Aggregates over the rows around each row: OVER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.plan.nodes.aggregates import OverCall, read_by
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """OVER windows sharing PARTITION BY and ORDER BY. Fields: the input's, then one a call. Rows of one time are in the
    order of the columns at `ties`; without any in that of arrival."""

    input: Node
    partition: tuple[int, ...]
    time: int
    calls: tuple[OverCall, ...]
    fields: tuple[Field, ...]
    ttl: int = 0
    ties: tuple[int, ...] = ()
    place: Place = NOWHERE

    @property
    def rows_ahead(self) -> int:
        """The number of following rows of its partition that a row waits for."""
        return max((call.spec.rows_ahead for call in self.calls), default=0)

    @property
    def time_ahead(self) -> int:
        """The ms by which the watermark passes a row before it is emitted."""
        return max((call.spec.time_ahead for call in self.calls), default=0)

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, (self.time, *self.partition, *self.ties, *read_by(self.calls)))
        check(
            len(self.fields) == len(self.input.fields) + len(self.calls),
            self,
            "has the columns of its input, then one a call",
        )
