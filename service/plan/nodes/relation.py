"""The common part of plan nodes: columns, a place in the file, and checks of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from service.plan.table import TimeKind
from service.plan.types import DataType


class Mode(Enum):
    """The kinds of changes that a relation's changelog holds."""

    APPEND = "append"
    RETRACT = "retract"


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a relation.

    `again` is the kind of time attribute that this plain column becomes where a query uses it as one. An event time: it
    is a key of groups, and a group changes only with rows of its time, which are not behind the watermark. A processing
    time: its value is then the time at which the row comes out.
    """

    name: str
    type: DataType
    nullable: bool = True
    time: TimeKind = TimeKind.NONE
    again: TimeKind = TimeKind.NONE

    @property
    def timeless(self) -> Field:
        """The column after a step that emits its rows in another order than that of their times."""
        again = TimeKind.PROCESSING if TimeKind.PROCESSING in (self.time, self.again) else TimeKind.NONE
        return replace(self, time=TimeKind.NONE, again=again)

    @property
    def keyed(self) -> Field:
        """The column as a key of groups."""
        again = TimeKind.EVENT if TimeKind.EVENT in (self.time, self.again) else TimeKind.NONE
        return replace(self, time=TimeKind.NONE, again=again)


@dataclass(frozen=True, slots=True)
class Place:
    """The place in the pipeline file at which a node was written, 1-based."""

    line: int = 0
    column: int = 0


NOWHERE = Place()
"""The place of a node that a pass has added."""


def check(holds: bool, node: object, claim: str) -> None:
    """Raise ValueError if a node violates its class: a mistake of Tailrace, not of a query."""
    if not holds:
        raise ValueError(f"a {type(node).__name__} {claim}")


def check_positions(node: object, columns: Sequence[Field], positions: Iterable[int]) -> None:
    """Raise ValueError if a node reads columns that its input, which has `columns`, does not have."""
    width = len(columns)
    check(all(0 <= p < width for p in positions), node, f"reads columns of its input, which has {width}")
