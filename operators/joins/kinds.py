"""The kinds of joins."""

from __future__ import annotations

from enum import StrEnum


class JoinKind(StrEnum):
    """The rows that a join shows: pairs that match, and the rows of a side that match nothing (padded with NULLs).

    A semi join has the left rows that match, an anti join those that do not, a mark join all of them, with a column
    behind their own that says whether they match.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"

    @property
    def shows_alone(self) -> tuple[bool, bool]:
        """Whether left and right rows that match nothing are shown."""
        left = self in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI, JoinKind.MARK)
        return left, self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def shows_right(self) -> bool:
        """Whether the columns of the right input are among those of the join."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
