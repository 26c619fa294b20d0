"""A heading and the panels below it."""

from __future__ import annotations

from typing import NamedTuple

from monitoring.panels import Panel


class Row(NamedTuple):
    """Panels flow from left to right and wrap where the page ends."""

    title: str
    panels: tuple[Panel, ...]
