"""The table of results as a bar chart: an SVG file, written as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#5b7fa6", "#a9bdd2", "#c8a45c", "#3f8f6b", "#8c6bb1", "#bb5a5a")
_LEFT, _WIDTH, _BAR, _GAP, _TOP = 230, 520, 15, 16, 62


def bar_chart(title: str, unit: str, bars: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> str:
    """A group of horizontal bars for each entry of `bars`, a bar for each name in `series` that it has."""
    longest = max((value for group in bars.values() for value in group.values()), default=0) or 1
    parts = [_text(_LEFT, 22, title, size=15), *_legend(series)]
    y = _TOP
    for label, group in bars.items():
        present = [name for name in series if name in group]
        middle = y + len(present) * _BAR / 2 + 4
        parts.append(_text(_LEFT - 10, middle, label, anchor="end"))
        for name in present:
            width = group[name] / longest * _WIDTH
            parts.append(
                f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 2}"'
                f' fill="{COLOURS[series.index(name) % len(COLOURS)]}"/>'
            )
            parts.append(_text(_LEFT + width + 5, y + _BAR - 4, f"{group[name]:,.0f}", size=11))
            y += _BAR
        y += _GAP
    parts.append(_text(_LEFT, y + 4, unit, size=11))
    size = f'width="{_LEFT + _WIDTH + 90}" height="{y + 20}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _legend(series: Sequence[str]) -> list[str]:
    parts, x = [], _LEFT
    for number, name in enumerate(series):
        parts.append(f'<rect x="{x}" y="34" width="11" height="11" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(_text(x + 16, 44, name, size=12))
        x += 32 + 7 * len(name)
    return parts


def _text(x: float, y: float, text: str, *, size: int = 13, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
