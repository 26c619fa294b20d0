"""Why a record cannot be read."""

from __future__ import annotations

from typing import NamedTuple


class Rejection(NamedTuple):
    """The reason why a record cannot be read. An empty one: it is to be passed over without a word."""

    reason: str
    detail: str
