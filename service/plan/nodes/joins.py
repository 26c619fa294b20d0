"""Joins: regular, in an interval of time, of windows, with the version of a row at a time, with what a database has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.joins.kinds import JoinKind
from service.plan.expressions import Expression
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions
from service.plan.nodes.sources import Scan

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A regular join. `residual` reads left columns first, then right. `null_safe[i]` = IS NOT DISTINCT FROM on key i.
    TTLs in ms, 0 = forever. `windowed`: both inputs have windows, whose starts and ends are compared, and an input is
    updating; `half_windowed`: only the starts or only the ends are compared. Fields: left's then right's (left's only
    for SEMI and ANTI, and one more, whether they match, for MARK)."""

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    residual: Expression | None
    fields: tuple[Field, ...]
    left_ttl: int = 0
    right_ttl: int = 0
    windowed: bool = False
    half_windowed: bool = False
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        _check_join(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoin:
    """A join on keys and on left time - right time within [lower, upper], both in ms and inclusive."""

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    lower: int
    upper: int
    residual: Expression | None
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        _check_join(self)
        _check_times(self, self.left_time, self.right_time)
        check(self.lower <= self.upper, self, "has a lower bound that is not above the upper one")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoin:
    """A join of rows of one window, answered when it closes: the keys hold its start and its end. `left_time` and
    `right_time` are the positions of window_time."""

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    residual: Expression | None
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        _check_join(self)
        _check_times(self, self.left_time, self.right_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin:
    """Left rows, INNER or LEFT, with the version of the right row of the same key at their own time.

    `right` is an upsert stream by `right_keys` of which every change is a version: one that is retracted ends the row
    of its key. In event time `right_time` is its time attribute; None says that `left_time` is PROCTIME(), or None
    where nobody reads it, and that a row meets the version that is there when it arrives. `untimed_deletes`: deletes of
    `right` may come without a time. Where rows of `left` may be retracted, what they have met is forgotten after `ttl`
    ms (0 = never).

    `waits`, in processing time only: no row of `left` is read before `right` has been read to where it ended when the
    job was first started.
    """

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_time: int | None
    right_time: int | None
    residual: Expression | None
    fields: tuple[Field, ...]
    untimed_deletes: bool = False
    ttl: int = 0
    waits: bool = False
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        _check_join(self)
        _check_times(self, self.left_time, self.right_time)
        check(self.kind in (JoinKind.INNER, JoinKind.LEFT), self, "is INNER or LEFT")
        check(self.left_time is not None or self.right_time is None, self, "has both times in event time")
        check(not self.waits or self.right_time is None, self, "waits in processing time only")

    @property
    def null_safe(self) -> tuple[bool, ...]:
        """NULL is the key of no version."""
        return (False,) * len(self.left_keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin:
    """Left rows, INNER or LEFT, with the rows that a table of a database has for their keys when they come.

    `right` is the scan of that table: it is asked for keys, and never read as a stream. Where rows of `left` may be
    retracted, what they have met is forgotten after `ttl` ms (0 = never).
    """

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None
    fields: tuple[Field, ...]
    ttl: int = 0
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check(isinstance(self.right, Scan), self, "looks rows up in a table")
        check(bool(self.left_keys), self, "has a key to look up")
        _check_join(self)
        check(self.kind in (JoinKind.INNER, JoinKind.LEFT), self, "is INNER or LEFT")

    @property
    def null_safe(self) -> tuple[bool, ...]:
        """NULL is the key of no row."""
        return (False,) * len(self.left_keys)

    @property
    def table(self) -> Scan:
        """The scan of the looked-up table."""
        assert isinstance(self.right, Scan)
        return self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJoin:
    """Rows that went two ways, put together: each row of `left` meets the one of `right` that has its key, and no other
    ever has. NULL is equal to NULL. Fields: left's then right's."""

    left: Node
    right: Node
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check(len(self.left_keys) == len(self.right_keys), self, "has as many keys on the left as on the right")
        check_positions(self, self.left.fields, self.left_keys)
        check_positions(self, self.right.fields, self.right_keys)
        both = len(self.left.fields) + len(self.right.fields)
        check(len(self.fields) == both, self, "has the columns of its inputs")

    @property
    def kind(self) -> JoinKind:
        """The kind of the join: a row is emitted when both its halves have arrived."""
        return JoinKind.INNER


AnyJoin = Join | IntervalJoin | WindowJoin | TemporalJoin | LookupJoin
"""The nodes with a left and a right input, equal keys and a residual condition."""


def _check_join(join: AnyJoin) -> None:
    counts = {len(join.left_keys), len(join.right_keys), len(join.null_safe)}
    check(len(counts) == 1, join, "has as many keys on the left as on the right")
    check_positions(join, join.left.fields, join.left_keys)
    check_positions(join, join.right.fields, join.right_keys)
    shown = len(join.right.fields) if join.kind.shows_right else join.kind is JoinKind.MARK
    check(len(join.fields) == len(join.left.fields) + shown, join, "has the columns of its inputs")


def _check_times(join: AnyJoin, left: int | None, right: int | None) -> None:
    check_positions(join, join.left.fields, () if left is None else (left,))
    check_positions(join, join.right.fields, () if right is None else (right,))
