"""The failures: errors in full, dead letters and late rows with their reasons."""

from __future__ import annotations

from service.observability.page.document import JobStatus, SetAside
from service.observability.page.recorder import Failure, ShownSample
from service.observability.page.text import ago, count, instant
from service.observability.page.view.markup import Markup, join, tag


def errors(job: JobStatus, now: float) -> Markup | None:
    """Return the last error in full, those before it in short."""
    if not job.errors:
        return None
    last, *older = reversed(job.errors)
    return tag(
        "section",
        tag("h3", "Last error"),
        tag("p", _when(last, now)),
        tag("pre", last.text, tabindex=0, role="group", aria_label=f"Last error of {job.name}"),
        tag(
            "details",
            tag("summary", f"{len(older)} before it"),
            tag("ul", [tag("li", f"{_when(each, now)} ", tag("code", each.summary)) for each in older]),
            id=f"errors-{job.name}",
        )
        if older
        else None,
        class_="errors",
    )


def _when(failure: Failure, now: float) -> str:
    text = f"{instant(failure.at)} UTC, {ago(now - failure.at)}"
    if failure.attempt is None:
        return f"{text}; the job was not started again."
    return f"{text}, attempt {failure.attempt} in a row."


def set_aside(job: JobStatus, now: float) -> Markup:
    """Return dead letters and late rows."""
    return join(
        _set_aside(
            job.dead_letters,
            "Dead letters",
            "Records that could not be read and rows that could not be computed",
            "TAILRACE_TOPICS__DEAD_LETTER",
            now,
        ),
        _set_aside(job.late, "Late rows", "Rows that arrived behind the watermark", "TAILRACE_TOPICS__LATE", now),
    )


def _set_aside(each: SetAside, title: str, what: str, setting: str, now: float) -> Markup:
    where = f"They are sent to {each.topic}." if each.topic else f"They are only counted ({setting} names no topic)."
    if not each.total:
        return tag("section", tag("h3", title), tag("p", f"{what}: none since the start."))
    counts = [tag("li", f"{name}: {count(number)}") for name, number in each.counts.items()]
    return tag(
        "section",
        tag("h3", title),
        tag("p", f"{what}: {count(each.total)} since the start. {where}"),
        tag("ul", counts, class_="counts"),
        tag("ol", [_sample(sample, now) for sample in reversed(each.samples)], class_="samples"),
    )


def _sample(sample: ShownSample, now: float) -> Markup:
    detail = f" – {sample.detail}" if sample.detail else ""
    return tag(
        "li",
        tag("p", tag("strong", sample.reason), detail),
        tag("p", f"{sample.origin}, {ago(now - sample.at)}", class_="origin"),
        tag("pre", sample.value + ("" if sample.whole else " …")) if sample.value else tag("p", "(no value)"),
    )
