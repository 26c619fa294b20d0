"""Says outright how a job is: does it run, does it keep up, and if not, what is in its way.

Each rule looks at one thing and answers with findings; `verdict` lists them in the order in which one would ask, but
troubles first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from service.observability.page.document import Finding, Grade, JobStatus, Summary
from service.observability.page.phase_hints import COMPUTING, words
from service.observability.page.skew import hot_partitions, watermark_holders
from service.observability.page.text import ago, count, many, rate, seconds, share

UNKNOWN = Summary("note", "", ())

BUSY = 0.9
"""The share of the time from which on a job has no reserve left."""

SILENT = 10.0
"""Seconds without the end of a batch that are nothing to speak of."""

GROWN = 0.2
"""By how much state must have grown within the hour to be spoken of."""

MANY_ROWS = 10_000
"""Rows of state below which growth is not worth a word."""


def verdict(job: JobStatus, now: float) -> Summary:
    """Return how the job is."""
    headline, grade = _headline(job, now)
    rules: tuple[Callable[[JobStatus, float], Iterator[Finding]], ...] = (
        _state,
        _silence,
        _backlog,
        _trigger,
        _phase,
        hot_partitions,
        watermark_holders,
        _growth,
        _set_aside,
        _failures,
    )
    found = [finding for rule in rules for finding in rule(job, now)]
    found.sort(key=lambda finding: finding.grade != "trouble")
    return Summary(grade, headline, tuple(found))


def _headline(job: JobStatus, now: float) -> tuple[str, Grade]:
    match job.state:
        case "starting":
            return "Starting", "note"
        case "waiting":
            return "Waiting for Kafka", "trouble"
        case "retrying":
            return "Failed, will be tried again", "trouble"
        case "failed":
            return "Has given up", "trouble"
        case "finished":
            return "Finished: all sources have ended", "good"
        case "stopping":
            return "Stopping", "note"
    if job.batches.ended is None:
        return "Starting: the first batch is not done", "note"
    if _silent(job, now):
        return "No batch ends", "trouble"
    if _falls_behind(job):
        return "Falls behind", "trouble"
    if _catches_up(job):
        return "Catches up", "watch"
    return "Keeps up", "good"


def _state(job: JobStatus, now: float) -> Iterator[Finding]:
    match job.state:
        case "waiting":
            hint = "it continues by itself when the brokers answer; check their address, the network and the log-in"
            yield Finding(
                "trouble", "Kafka", f"Kafka has not answered for {seconds(now - job.since)}: {job.reason}", hint
            )
        case "retrying" if job.errors and (again := job.errors[-1].again_at) is not None:
            when = f"in {seconds(again - now)}" if again > now else "now"
            text = f"Attempt {job.errors[-1].attempt} has failed; the next one is due {when}: {job.reason}"
            yield Finding("trouble", "failure", text, "the error is shown in full below")
        case "failed":
            hint = "the error is shown in full below; nothing is lost: the next start continues where this one ended"
            yield Finding("trouble", "failure", f"The job has ended with an error: {job.reason}", hint)


def _silence(job: JobStatus, now: float) -> Iterator[Finding]:
    if _silent(job, now) and job.batches.ended is not None:
        text = f"No batch has ended for {seconds(now - job.batches.ended)}"
        slowest = job.batches.slowest_seconds or 0.0
        text += f", while those before took up to {seconds(slowest)}"
        hint = "the log shows whether tasks fail and are tried again; a very large batch takes long, too"
        yield Finding("trouble", "batches", text, hint)


def _backlog(job: JobStatus, now: float) -> Iterator[Finding]:
    if job.state != "running" or job.batches.ended is None:
        return
    pace = job.pace
    if _falls_behind(job):
        text = (
            f"Rows come faster than they are read: {count(pace.waiting)} were waiting when the last batch began,"
            f" {count((pace.trend or 0) * 60)} more each minute"
        )
        yield Finding("trouble", "backlog", text, "the findings below say where the time goes")
    elif _catches_up(job):
        less = -(pace.trend or -1)
        text = (
            f"{count(pace.waiting)} rows were waiting when the last batch began, {count(less * 60)} fewer each minute"
        )
        left = pace.waiting / less
        yield Finding("watch", "backlog", f"{text}; at this pace none is left in {seconds(left)}")
    elif pace.left:
        yield Finding("note", "backlog", f"The last batch left {count(pace.left)} rows, about as many as those before")
    else:
        text = f"Every batch reads all that has come: {rate(pace.rows_in)} rows a second"
        yield Finding("good", "backlog", text)


def _trigger(job: JobStatus, now: float) -> Iterator[Finding]:
    b = job.batches
    if b.median_seconds is None or b.busy is None or job.state != "running":
        return
    took = f"A batch takes {seconds(b.median_seconds)}"
    if b.slowest_seconds is not None and b.slowest_seconds > 2 * b.median_seconds:
        took += f" (the slowest {seconds(b.slowest_seconds)})"
    if b.trigger_seconds and b.median_seconds > b.trigger_seconds:
        text = f"{took}, longer than the trigger of {seconds(b.trigger_seconds)}: batches run one after the other"
        yield Finding("watch", "batches", text, "the next finding says where the time goes")
    elif b.trigger_seconds:
        yield Finding("good", "batches", f"{took} of the {seconds(b.trigger_seconds)} between two triggers")
    else:
        yield Finding("note", "batches", f"{took}; one is running {share(b.busy)} of the time")
    if b.full:
        text = f"The last batch was as large as TAILRACE_BATCH__ROWS lets it be ({count(b.most_rows)} rows of a table)"
        yield Finding("note", "batches", text)


def _phase(job: JobStatus, now: float) -> Iterator[Finding]:
    """Where the time of a batch goes, down to what tasks do if it goes to them."""
    b = job.batches
    if not b.phases or not b.median_seconds:
        return
    first = b.phases[0]
    grade: Grade = "watch" if _pressed(job) else "note"
    text = f"{share(first.share)} of a batch goes to {words(first.phase).title} ({seconds(first.seconds)} each)"
    hint = words(first.phase).hint
    if first.phase == COMPUTING and b.tasks:
        known = sum(task.seconds for task in b.tasks)
        task = b.tasks[0]
        if known < first.seconds / 2:
            # Were the tasks to run one after the other, they would still take no more than this.
            text += (
                f"; of that, {share(1 - known / first.seconds)} or more is Spark's own: shuffles, hand-over, scheduling"
            )
            hint = "fewer shuffle partitions (a new checkpoint), or a longer TAILRACE_BATCH__TRIGGER for larger batches"
        else:
            text += f"; its tasks spend {share(task.share)} of their time on {words(task.phase).title}"
            hint = words(task.phase).hint
    yield Finding(grade, "phases", text, hint)


def _growth(job: JobStatus, now: float) -> Iterator[Finding]:
    known = [rows for rows in job.history.state_rows if rows is not None]
    unbounded = [f"{step.text} keeps {s.keeps}" for step in job.plan.steps for s in step.state if s.bound is None]
    unbounded += [f"{sink.table} keeps {s.keeps}" for sink in job.plan.sinks for s in sink.state if s.bound is None]
    if len(known) < 60 or not unbounded or known[-1] < MANY_ROWS:
        return
    grown = known[-1] - known[0]
    if grown > GROWN * max(known[0], 1.0):
        minutes = seconds(len(known) * job.history.slot_seconds)
        text = f"The state has grown by {count(grown)} rows to {count(known[-1])} in {minutes}"
        text += f", and has no bound: {unbounded[0]}"
        yield Finding(
            "watch", "state", text, "set 'table.exec.state.ttl', or give a STATE_TTL hint, if old rows may go"
        )


def _set_aside(job: JobStatus, now: float) -> Iterator[Finding]:
    letters, late = job.dead_letters, job.late
    if letters.total:
        last = (
            f"; the last {ago(now - letters.samples[-1].at)}: {letters.samples[-1].reason}" if letters.samples else ""
        )
        where = f"sent to {letters.topic}" if letters.topic else "left out, as there is no dead-letter topic"
        text = many(letters.total, "record or row was", "records or rows were") + f" {where}{last}"
        yield Finding("watch", "dead letters", text, "the last few are shown below")
    if late.total:
        where = f"sent to {late.topic}" if late.topic else "left out"
        operators = ", ".join(late.counts)
        came = many(
            late.total, "row arrived behind the watermark and was", "rows arrived behind the watermark and were"
        )
        text = f"{came} {where} (at {operators})"
        hint = "a watermark that waits longer takes them in, and lets answers come that much later"
        yield Finding("watch", "late rows", text, hint)


def _failures(job: JobStatus, now: float) -> Iterator[Finding]:
    if job.state == "running" and job.errors and now - job.errors[-1].at < 3600:
        last = job.errors[-1]
        text = f"A batch failed {ago(now - last.at)}, and was done again: {last.summary}"
        yield Finding("watch", "failure", text, "the error is shown in full below")


def _silent(job: JobStatus, now: float) -> bool:
    b = job.batches
    if job.state != "running" or b.ended is None:
        return False
    usual = max(b.slowest_seconds or 0.0, b.trigger_seconds, b.tick_seconds)
    return now - b.ended > max(SILENT, 3 * usual)


def _falls_behind(job: JobStatus) -> bool:
    """More and more rows wait, and by more than what comes in a second, while there is no reserve."""
    pace = job.pace
    growing = pace.trend is not None and pace.trend * 60 > max(1.0, pace.rows_in)
    return job.state == "running" and growing and (job.batches.busy or 0.0) > BUSY


def _catches_up(job: JobStatus) -> bool:
    """Fewer rows wait each minute, and more than come in two batches."""
    pace, b = job.pace, job.batches
    usual = pace.rows_in * 2 * max(b.median_seconds or 0.0, b.trigger_seconds, b.tick_seconds)
    shrinking = pace.trend is not None and -pace.trend * 60 > max(1.0, pace.rows_in)
    return job.state == "running" and shrinking and pace.left > 0 and pace.waiting > usual / 2


def _pressed(job: JobStatus) -> bool:
    """Whether the time that a batch takes is a trouble."""
    b = job.batches
    late = bool(b.trigger_seconds and b.median_seconds and b.median_seconds > b.trigger_seconds)
    return late or _falls_behind(job) or _catches_up(job)
