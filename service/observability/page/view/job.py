"""One job of the page: its state, its figures over the last hour, its batches, its graph, its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.observability.page.document import Finding, Grade, JobStatus
from service.observability.page.text import ago, count, rate, seconds
from service.observability.page.view.chart import sparkline
from service.observability.page.view.graph import graph
from service.observability.page.view.markup import Markup, hidden, tag
from service.observability.page.view.tables import operators, phases, read_tables, written_tables
from service.observability.page.view.trouble import errors, set_aside

SIGNS: dict[Grade, tuple[str, str]] = {
    "good": ("✓", "good"),
    "note": ("i", "note"),
    "watch": ("!", "watch"),
    "trouble": ("✕", "trouble"),
}
"""A sign and a word for each grade: colour alone is not accessible."""


def anchor(job: JobStatus) -> str:
    """Return the id of a job's part of the page."""
    return f"job-{job.name}"


def sign(grade: Grade) -> Markup:
    """Return the sign of a grade, and its word for screen readers."""
    shape, word = SIGNS[grade]
    return tag("span", tag("span", shape, aria_hidden="true"), hidden(f"{word}: "), class_=f"sign {grade}")


def section(job: JobStatus, now: float) -> Markup:
    """Return the whole part of one job."""
    name = anchor(job)
    return tag(
        "section",
        tag("h2", job.name, id=f"{name}-title"),
        _verdict(job),
        errors(job, now) if job.state in ("retrying", "failed") else None,
        _figures(job, now),
        tag("section", tag("h3", "Where the time goes"), phases(job)),
        tag("section", tag("h3", "Pipeline"), graph(job), _levels(job), _warnings(job)),
        tag("section", tag("h3", "Tables and state"), read_tables(job, now), operators(job), written_tables(job)),
        set_aside(job, now),
        errors(job, now) if job.state not in ("retrying", "failed") else None,
        id=name,
        aria_labelledby=f"{name}-title",
        class_="job",
    )


def _verdict(job: JobStatus) -> Markup:
    verdict = job.verdict
    return tag(
        "div",
        tag("p", sign(verdict.grade), " ", verdict.headline, class_="headline", role="status"),
        tag("ul", [_finding(each) for each in verdict.findings], class_="findings"),
        class_=f"verdict {verdict.grade}",
    )


def _finding(finding: Finding) -> Markup:
    hint = tag("span", finding.hint, class_="hint") if finding.hint else None
    about = finding.about[:1].upper() + finding.about[1:]
    text = tag("span", tag("strong", f"{about}:"), " ", finding.text)
    return tag("li", sign(finding.grade), tag("div", text, " ", hint))


def _figures(job: JobStatus, now: float) -> Markup:
    pace, batches, series = job.pace, job.batches, job.history
    lags = [o.watermark_lag_seconds for o in job.operators if o.watermark_lag_seconds is not None]
    state = [o.state_rows for o in job.operators if o.state_rows is not None]
    took = "–" if batches.median_seconds is None else seconds(batches.median_seconds)
    trigger = f"trigger {seconds(batches.trigger_seconds)}" if batches.trigger_seconds else "as data comes"
    if batches.ended is not None:
        trigger += f"; batch {batches.number} ended {ago(now - batches.ended)}"
    late = f"{count(job.late.total)} late, {count(job.dead_letters.total)} dead letters"
    waited = f"{count(pace.waiting)} waited for the last batch"
    return tag(
        "div",
        _figure("Rows in", f"{rate(pace.rows_in)}/s", "", series.rows_in, _per_second),
        _figure("Rows out", f"{rate(pace.rows_out)}/s", "", series.rows_out, _per_second),
        _figure("Not read yet", count(pace.lag), waited, series.waiting, count),
        _figure("Batch", took, trigger, series.batch_seconds, seconds, batches.trigger_seconds),
        _figure("State", f"{count(sum(state))} rows", "", series.state_rows, count),
        _figure("Watermark", ago(max(lags)) if lags else "–", late, (), count),
        class_="figures",
    )  # fmt: skip


def _figure(
    name: str,
    value: str,
    note: str,
    values: Sequence[float | None],
    written: Callable[[float], str],
    limit: float = 0.0,
) -> Markup:
    return tag(
        "div",
        tag("p", name, class_="name"),
        tag("p", value, class_="value"),
        tag("p", note, class_="note") if note else None,
        sparkline(values, name, written, limit) if values else None,
        class_="figure",
    )


def _per_second(number: float) -> str:
    return f"{rate(number)} a second"


def _levels(job: JobStatus) -> Markup:
    """The layout of the program, for readers who look at Spark's stages."""
    levels = [
        tag("li", ", ".join(level.operators), tag("ul", [tag("li", f"exchange {each}") for each in level.exchanges]))
        for level in job.plan.levels
    ]
    return tag(
        "details",
        tag("summary", "Levels and exchanges"),
        tag("ol", levels, start=0, class_="levels"),
        tag("p", f"Fingerprint {job.plan.fingerprint}", class_="note"),
        id=f"levels-{job.name}",
    )


def _warnings(job: JobStatus) -> Markup | None:
    if not job.plan.warnings:
        return None
    items = [
        tag("li", f"line {w.place.line}: {w.primary}", tag("span", f" {w.hint}", class_="hint") if w.hint else None)
        for w in job.plan.warnings
    ]
    return tag(
        "details", tag("summary", f"{len(items)} warnings of the plan"), tag("ul", items), id=f"warnings-{job.name}"
    )
