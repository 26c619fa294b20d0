"""The whole page."""

from __future__ import annotations

from collections.abc import Sequence

from service.observability.page.document import Grade, JobStatus, Setting, Status
from service.observability.page.text import count, instant, seconds, size
from service.observability.page.view.job import anchor, section, sign
from service.observability.page.view.markup import Child, Markup, tag
from service.observability.page.view.tables import grid

WITHOUT_SCRIPT = 5
"""Seconds until the page is reloaded where scripts do not run."""


def page(status: Status) -> str:
    """Return the HTML of the page."""
    return "<!doctype html>" + tag("html", _head(status), _body(status), lang="en").html


def _head(status: Status) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{_summary(status)} – Tailrace"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="page.svg"),
        [tag("link", rel="stylesheet", href=href) for href in ("page.css", "figures.css", "graph.css")],
        tag("noscript", tag("meta", http_equiv="refresh", content=WITHOUT_SCRIPT)),
        tag("script", src="page.js", defer=True),
    )


def _body(status: Status) -> Markup:
    return tag(
        "body",
        tag("a", "Skip to the jobs", href="#jobs", class_="skip"),
        tag(
            "header",
            tag("h1", "Tailrace"),
            tag("p", f"Version {status.version}, running for {seconds(status.now - status.started)}.", id="running"),
            _freshness(status),
        ),
        tag(
            "main",
            _service(status),
            _overview(status) if len(status.jobs) > 1 else None,
            [section(job, status.now) for job in status.jobs]
            or tag("p", "Nothing is known of any job yet: the service is starting.", class_="empty"),
            _processes(status),
            _settings(status),
            id="jobs",
            tabindex=-1,
        ),
        tag("footer", _links()),
    )


def _freshness(status: Status) -> Markup:
    """When the page was made, and the button that keeps it so; the script fills in its state."""
    return tag(
        "div",
        tag("p", "As of ", tag("time", f"{instant(status.now)} UTC"), id="as-of"),
        tag("button", "Pause", type="button", id="pause", hidden=True, aria_pressed="false"),
        tag("p", id="lost", role="alert", hidden=True),
        class_="freshness",
    )


def _summary(status: Status) -> str:
    if not status.jobs:
        return "Starting"
    worst = min(status.jobs, key=lambda job: ("trouble", "watch", "note", "good").index(job.verdict.grade))
    return worst.verdict.headline if len(status.jobs) == 1 else f"{worst.name}: {worst.verdict.headline}"


def _service(status: Status) -> Markup | None:
    """What the probes say, where it is not good."""
    if status.alive and status.ready:
        return None
    what = "The service is not alive" if not status.alive else "The service is not ready"
    grade: Grade = "watch" if status.alive else "trouble"
    items = [tag("li", tag("strong", f"{name}:"), f" {why}") for name, why in status.troubles.items()]
    return tag(
        "section",
        tag("p", sign(grade), f" {what}", class_="headline"),
        tag("ul", items),
        class_=f"probes {grade}",
        aria_label="Probes",
    )


def _overview(status: Status) -> Markup:
    rows: list[list[Child]] = [
        [
            tag("a", job.name, href=f"#{anchor(job)}"),
            [sign(job.verdict.grade), " ", job.verdict.headline],
            count(job.pace.rows_in),
            count(job.pace.lag),
            "–" if job.batches.median_seconds is None else seconds(job.batches.median_seconds),
        ]
        for job in _gravest_first(status)
    ]
    head = ("job", "how it is", "rows/s", "not read yet", "batch")
    return tag("nav", grid("Jobs", head, rows, frozenset({2, 3, 4})), aria_label="Jobs")


def _gravest_first(status: Status) -> list[JobStatus]:
    return sorted(status.jobs, key=lambda job: ("trouble", "watch", "note", "good").index(job.verdict.grade))


def _processes(status: Status) -> Markup | None:
    if not status.memory:
        return None
    rows = [[each.process, each.executor, size(each.octets)] for each in status.memory]
    caption = "Memory of the processes"
    if status.executors_expected is not None:
        caption += f" ({status.executors} of {status.executors_expected} executors)"
    return tag("section", tag("h2", "Processes"), grid(caption, ("process", "of", "memory"), rows, frozenset({2})))


def _settings(status: Status) -> Markup:
    """What is set comes first, the rest when it is asked for."""
    changed = [setting for setting in status.settings if not setting.default]
    rest = [setting for setting in status.settings if setting.default]
    return tag(
        "section",
        tag("h2", "Settings"),
        _listed("Changed", changed) if changed else tag("p", "None is changed."),
        tag("details", tag("summary", f"{len(rest)} as they are by default"), _listed("Default", rest), id="settings"),
    )


def _listed(caption: str, settings: Sequence[Setting]) -> Markup:
    rows: list[list[Child]] = [
        [
            tag("code", setting.name),
            tag("code", "set, not shown" if setting.value is None else setting.value or "–"),
            _with_code(setting.meaning),
        ]
        for setting in settings
    ]
    return grid(caption, ("variable", "value", "meaning"), rows, frozenset())


def _with_code(text: str) -> list[Child]:
    """A text whose parts in backticks are code."""
    return [tag("code", part) if at % 2 else part for at, part in enumerate(text.split("`"))]


def _links() -> Markup:
    links = (
        ("status.json", "status.json: this page for scripts"),
        ("metrics", "metrics"),
        ("livez", "livez"),
        ("readyz", "readyz"),
    )
    return tag("ul", [tag("li", tag("a", text, href=href)) for href, text in links])
