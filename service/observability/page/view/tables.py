"""Tables of figures: the tables read and written, the state of operators, the phases of batches."""

from __future__ import annotations

from collections.abc import Sequence

from service.observability.page.document import JobStatus, Partition, Phase, TableStatus
from service.observability.page.phase_hints import words
from service.observability.page.text import ago, count, instant, rate, seconds, size
from service.observability.page.view.chart import share_bar
from service.observability.page.view.markup import Child, Markup, join, tag


def grid(caption: str, head: Sequence[str], rows: Sequence[Sequence[Child]], numbers: frozenset[int]) -> Markup:
    """Return a table whose first column names the row; `numbers` are the columns that are right-aligned. On a narrow
    screen it is scrolled by itself, also by keyboard."""

    def cell(at: int, child: Child) -> Markup:
        return tag("th", child, scope="row") if at == 0 else tag("td", child, class_=kind(at))

    def kind(at: int) -> str | None:
        return "number" if at in numbers else None

    columns = [tag("th", name, scope="col", class_=kind(at)) for at, name in enumerate(head)]
    body = [tag("tr", [cell(at, child) for at, child in enumerate(row)]) for row in rows]
    table = tag("table", tag("caption", caption), tag("thead", tag("tr", columns)), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex=0, role="group", aria_label=caption)


def read_tables(job: JobStatus, now: float) -> Markup:
    """Return the tables that are read, and their partitions."""
    rows = [
        [t.table, _origin(t.connector, t.format, t.topics), count(t.rows), rate(t.rows_per_second), count(t.lag),
         count(t.decode_errors)]
        for t in job.tables
    ]  # fmt: skip
    head = ("table", "from", "rows", "rows/s", "not read yet", "unreadable")
    return join(
        grid("Tables that are read", head, rows, frozenset({2, 3, 4, 5})),
        [_partitions(job, table, now) for table in job.tables if table.partitions],
    )


def _partitions(job: JobStatus, table: TableStatus, now: float) -> Markup:
    head = ("partition", "rows/s", "not read yet", "share of those", "watermark", "last rows", "read to", "end")
    rows = [_partition(table, each, now) for each in table.partitions]
    name = f"Partitions of {table.table}"
    return tag(
        "details",
        tag("summary", f"{name} ({len(rows)})"),
        grid(name, head, rows, frozenset({1, 2, 6, 7})),
        id=f"partitions-{job.name}-{table.table}",
        open=len(rows) <= 8,
    )


def _partition(table: TableStatus, partition: Partition, now: float) -> list[Child]:
    watermark: Child = "none yet" if table.has_watermark else "none declared"
    if partition.watermark is not None:
        watermark = tag("time", f"{instant(partition.watermark)} UTC")
    if partition.idle:
        watermark = [watermark, " (idle)"]
    moved = "none since the start" if partition.moved is None else ago(now - partition.moved)
    return [
        f"{partition.topic}/{partition.partition}",
        rate(partition.rows_per_second),
        count(partition.lag),
        share_bar(partition.lag / table.lag) if table.lag else "–",
        watermark,
        moved,
        count(partition.read),
        count(partition.end),
    ]


def written_tables(job: JobStatus) -> Markup:
    """Return the tables that are written."""
    rows = [
        [s.table, _origin(s.connector, s.format, s.topics), count(s.inserts), count(s.retractions),
         count(s.records) if s.topics else "–"]
        for s in job.sinks
    ]  # fmt: skip
    head = ("table", "to", "rows added", "rows retracted", "records")
    return grid("Tables that are written", head, rows, frozenset({2, 3, 4}))


def operators(job: JobStatus) -> Markup | None:
    """Return the state and the watermark of operators; those without state and without refused rows are left out."""
    head = ("operator", "step", "state rows", "state size", "watermark", "behind now", "late", "not computed")
    steps = {step.id: step.text for step in job.plan.steps}
    rows: list[list[Child]] = [
        [
            o.operator,
            steps.get(o.step, "") if o.step is not None else "net changes of the sink",
            "–" if o.state_rows is None else count(o.state_rows),
            "–" if o.state_bytes is None else size(o.state_bytes),
            "–" if o.watermark is None else tag("time", f"{instant(o.watermark)} UTC"),
            "–" if o.watermark_lag_seconds is None else seconds(o.watermark_lag_seconds),
            count(o.late),
            count(o.uncomputed),
        ]
        for o in job.operators
        if o.state_rows is not None or o.late or o.uncomputed or o.dropped_retractions
    ]
    return grid("Operators", head, rows, frozenset({2, 3, 5, 6, 7})) if rows else None


def phases(job: JobStatus) -> Markup:
    """Return the phases of a batch."""
    b = job.batches
    if not b.phases:
        return tag("p", "No batch is done yet.")
    inside = "Within computing, what tasks do side by side (seconds added over tasks)"
    return tag(
        "div",
        _phases("The phases of a batch, one after the other (mean of the last five minutes)", b.phases),
        _phases(inside, b.tasks) if b.tasks else None,
        class_="beside",
    )


def _phases(caption: str, each: Sequence[Phase]) -> Markup:
    rows: list[list[Child]] = []
    for phase in each:
        known = words(phase.phase)
        meaning = tag("span", known.meaning, class_="meaning") if known.meaning else None
        rows.append([[known.title, " ", meaning], seconds(phase.seconds), share_bar(phase.share)])
    return grid(caption, ("phase", "time", "share"), rows, frozenset({1}))


def _origin(connector: str, format: str, topics: Sequence[str]) -> str:
    return ", ".join(filter(None, (connector, format))) + (f": {', '.join(topics)}" if topics else "")
