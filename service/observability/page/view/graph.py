"""The pipeline as a graph, from tables down to sinks.

Rows are lists and the lines between two rows a picture, so the graph has no script and no measured sizes: places of a
row share its width evenly, which is all that the lines need. For screen readers, each step names its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.observability.page.document import JobStatus, OperatorStatus
from service.observability.page.drawing import Passing, draw
from service.observability.page.text import ago, among, count, rate, size
from service.observability.page.view.markup import Child, Markup, hidden, join, tag
from service.plan.explain import PlanState, SinkText, StepText

Id = tuple[str, int]
"""A step by its number, or a sink by its position."""

WIDEST = 8
"""Places of a row that the style sheet has widths for; more share the width of this many."""


def graph(job: JobStatus) -> Markup:
    """Return the graph of a job."""
    plan = job.plan
    inputs: dict[Id, list[Id]] = {("step", s.id): [("step", i) for i in s.inputs] for s in plan.steps}
    inputs |= {("sink", place): [("step", sink.input)] for place, sink in enumerate(plan.sinks)}
    drawing = draw(inputs)
    steps = {step.id: step for step in plan.steps}
    parts: list[Markup] = []
    for number, row in enumerate(drawing.rows):
        if number:
            parts.append(_lines(drawing.lines[number - 1], len(drawing.rows[number - 1]), len(row)))
        led_on = {upper for upper, _ in drawing.lines[number]} if number < len(drawing.lines) else set()
        places = [_place(node, job, steps, led_on=at in led_on) for at, node in enumerate(row)]
        parts.append(tag("ol", places, class_="row"))
    widest = min(WIDEST, max((len(row) for row in drawing.rows), default=1))
    inner = tag("div", parts, class_=f"graph wide-{widest}")
    label = f"Graph of {job.name}, from tables to sinks"
    return tag("div", inner, class_="scroll", tabindex=0, role="group", aria_label=label)


def _place(node: Id | Passing[Id], job: JobStatus, steps: dict[int, StepText], *, led_on: bool) -> Markup:
    """A place of a row; one that is `led_on` has a line down from what stands there."""
    if isinstance(node, Passing):
        return tag("li", class_="led-on", aria_hidden="true")
    kind, number = node
    step = _sink(job, job.plan.sinks[number], steps) if kind == "sink" else _step(job, steps[number], steps)
    return tag("li", step, class_="led-on" if led_on else None)


def _lines(lines: tuple[tuple[int, int], ...], above: int, below: int) -> Markup:
    paths = []
    for upper, lower in lines:
        x, y = (upper + 0.5) / above * 100, (lower + 0.5) / below * 100
        paths.append(tag("path", d=f"M{x:.2f} 0C{x:.2f} 5 {y:.2f} 5 {y:.2f} 10"))
    return tag("svg", paths, class_="lines", viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def _step(job: JobStatus, step: StepText, steps: dict[int, StepText]) -> Markup:
    kind = "table" if step.table is not None else step.kind
    live = list(_table_figures(job, step) if step.table is not None else _operator_figures(job, step.operators))
    promises: list[Child] = [_mode(step.mode)]
    promises += [tag("li", f"key ({', '.join(key)})") for key in step.keys]
    if step.event_time:
        promises.append(tag("li", f"event time {step.event_time}"))
    title: list[Child] = [tag("span", kind, class_="kind"), " ", step.text.removeprefix(step.kind + " ")]
    if step.table is None and not step.text.startswith(step.kind):
        title = [step.text]
    columns = tag("ul", [tag("li", f"{name} ", tag("span", type_, class_="type")) for name, type_ in step.columns])
    return tag(
        "article",
        tag("h4", title),
        hidden("reads " + among([steps[i].text for i in step.inputs])) if step.inputs else None,
        tag("ul", promises, class_="promises"),
        _states(step.state),
        tag("dl", live, class_="live") if live else None,
        tag("details", tag("summary", f"{len(step.columns)} columns"), columns, id=f"columns-{job.name}-{step.id}"),
        class_="step table" if step.table is not None else "step",
    )


def _sink(job: JobStatus, sink: SinkText, steps: dict[int, StepText]) -> Markup:
    figures = [
        join(_figure("added", count(s.inserts)), _figure("retracted", count(s.retractions)))
        for s in job.sinks
        if s.table == sink.table
    ]
    live = [*figures, *_operator_figures(job, sink.operators)]
    key = tag("li", f"primary key ({', '.join(sink.key)})") if sink.key else None
    return tag(
        "article",
        tag("h4", tag("span", "sink", class_="kind"), f" {sink.table}"),
        hidden(f"writes {steps[sink.input].text}"),
        tag("p", sink.format, class_="format"),
        tag("ul", _mode(sink.mode), key, class_="promises"),
        _states(sink.state),
        tag("dl", live, class_="live"),
        class_="step sink",
    )


def _mode(mode: str) -> Markup:
    meaning = {"append": "rows are only added", "retract": "rows are inserted and retracted"}.get(mode, "")
    return tag("li", mode, class_=f"mode {mode}", title=meaning or None)


def _states(states: list[PlanState]) -> Markup | None:
    if not states:
        return None
    return tag(
        "ul",
        [
            tag("li", f"keeps {s.keeps}, until {s.bound}")
            if s.bound
            else tag("li", f"keeps {s.keeps}, ", tag("strong", "without a bound"), class_="unbounded")
            for s in states
        ],
        class_="states",
    )


def _table_figures(job: JobStatus, step: StepText) -> Iterator[Markup]:
    for table in job.tables:
        if table.table == step.table:
            yield _figure("rows/s", rate(table.rows_per_second))
            yield _figure("not read yet", count(table.lag))


def _operator_figures(job: JobStatus, names: list[str]) -> Iterator[Markup]:
    mine: list[OperatorStatus] = [operator for operator in job.operators if operator.operator in names]
    if kept := [o for o in mine if o.state_rows is not None]:
        rows, octets = sum(o.state_rows or 0 for o in kept), sum(o.state_bytes or 0 for o in kept)
        yield _figure("state", f"{count(rows)} rows, {size(octets)}")
    if lags := [o.watermark_lag_seconds for o in mine if o.watermark_lag_seconds is not None]:
        yield _figure("watermark", ago(max(lags)))
    for what, total in (
        ("late", sum(o.late for o in mine)),
        ("not computed", sum(o.uncomputed for o in mine)),
        ("unknown retractions", sum(o.dropped_retractions for o in mine)),
    ):
        if total:
            yield _figure(what, count(total))
    if mine:
        yield tag("div", tag("dt", "operator"), tag("dd", ", ".join(o.operator for o in mine)), class_="names")


def _figure(what: str, value: str) -> Markup:
    return tag("div", tag("dt", what), tag("dd", value))
