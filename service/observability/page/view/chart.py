"""Lines and bars, as SVG. They have no style of their own, so the page's policy may forbid inline styles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.observability.page.text import share
from service.observability.page.view.markup import Markup, tag

HEIGHT = 30.0
"""The height of a line in units of the drawing, of which a slot is one wide."""


def sparkline(values: Sequence[float | None], what: str, written: Callable[[float], str], limit: float = 0.0) -> Markup:
    """Return a line through the last hour, broken where there is nothing to show; `limit` draws a dashed line at a
    height."""
    known = [value for value in values if value is not None]
    if not known:
        return tag("p", "no figures yet", class_="spark none")
    top = max(*known, limit, 1e-9)
    label = f"{what}, last hour: lowest {written(min(known))}, highest {written(max(known))}, now {written(known[-1])}"
    if limit:
        label += f"; the dashed line is at {written(limit)}"
    lines = [_line(run, top) for run in _runs(values)]
    dashed = tag("path", d=f"M0 {_y(limit, top):.1f}H{len(values)}", class_="limit") if limit else None
    return tag(
        "svg",
        lines,
        dashed,
        class_="spark",
        viewBox=f"0 0 {len(values)} {HEIGHT + 2:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def bar(part: float) -> Markup:
    """Return a share as the length of a bar. The number stands beside it, so the bar is hidden from screen readers."""
    width = max(0.0, min(1.0, part)) * 100
    filled = tag("rect", width=f"{width:.1f}", height=8, class_="filled")
    return tag(
        "svg", tag("rect", width=100, height=8, class_="empty"), filled, class_="bar", viewBox="0 0 100 8",
        preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip


def share_bar(part: float) -> Markup:
    """Return a share in words and as a bar."""
    return tag("span", bar(part), tag("span", share(part)), class_="share")


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Values with their places, cut where there are none."""
    runs: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((place, value))
    return [run for run in runs if run]


def _line(run: Sequence[tuple[int, float]], top: float) -> Markup:
    points = [f"{place + 0.5:g} {_y(value, top):.1f}" for place, value in run]
    if len(points) == 1:  # a single slot is a short dash, or it would not be seen
        points = [f"{run[0][0]} {_y(run[0][1], top):.1f}", f"{run[0][0] + 1} {_y(run[0][1], top):.1f}"]
    return tag("path", d="M" + "L".join(points), class_="line")


def _y(value: float, top: float) -> float:
    return 1 + HEIGHT * (1 - value / top)
