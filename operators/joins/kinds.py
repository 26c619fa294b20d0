"""The kinds of joins."""

from __future__ import annotations

from enum import StrEnum


class JoinKind(StrEnum):
    """Which rows a join shows: pairs that match, and the rows of a side that match nothing (padded with NULLs).

    A semi join has the left rows that match, an anti join those that do not.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
