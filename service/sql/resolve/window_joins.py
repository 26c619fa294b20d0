"""The recognition of window joins: both inputs have windows, whose starts and ends are compared."""

from __future__ import annotations

from service.plan.expressions import Column
from service.plan.nodes import Mode
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.sql.resolve.join_conditions import Conditions
from service.sql.resolve.relation import Relation, WindowColumns

Windows = tuple[WindowColumns, WindowColumns]


def joined_windows(left: Relation, right: Relation, found: Conditions) -> Windows | None:
    """Return the windows of both inputs whose starts are equal, and their ends; None where it is no window join.

    Retracted rows are not joined by windows, since a window is answered once.
    """
    if mode(left.node) is not Mode.APPEND or mode(right.node) is not Mode.APPEND:
        return None
    return compared_windows(left, right, found)


def compared_windows(left: Relation, right: Relation, found: Conditions) -> Windows | None:
    """Return the windows of both inputs whose starts are equal, and their ends, if there are any."""
    compared = _compared(found)
    for mine, theirs in _pairs(left, right):
        if {(mine.start, theirs.start), (mine.end, theirs.end)} <= compared:
            return mine, theirs
    return None


def half_windowed(left: Relation, right: Relation, found: Conditions) -> bool:
    """Return whether only the starts or only the ends of windows are compared."""
    compared = _compared(found)
    return any(
        len({(mine.start, theirs.start), (mine.end, theirs.end)} & compared) == 1
        for mine, theirs in _pairs(left, right)
    )


def _compared(found: Conditions) -> set[tuple[int, int]]:
    """The columns that are equal, left's and right's."""
    return {(a.index, b.index) for a, b, _ in found.keys if isinstance(a, Column) and isinstance(b, Column)}


def _pairs(left: Relation, right: Relation) -> list[Windows]:
    """The windows of both inputs that close by the same kind of time."""
    return [
        (mine, theirs)
        for mine in left.windows
        for theirs in right.windows
        if left.scope.field(mine.time).time is right.scope.field(theirs.time).time is not TimeKind.NONE
    ]
