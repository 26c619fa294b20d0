"""The reports of the running service: metrics, health, logs, and a progress line on a terminal."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from service import __version__
from service.observability.health import Health
from service.observability.metrics import Metrics
from service.observability.metrics.series import absorb
from service.observability.page.recorder import Recorder
from service.observability.progress import Offsets, Progress
from service.observability.redaction import Redaction
from service.runtime.task_metrics import TaskMetrics

_END_OF_TIME = 253402300800.0
"""The year 10,000, in seconds; the watermark of a source that has ended is later."""


class Observer:
    """The one place through which every event passes, and where secrets are removed from the texts of errors.

    `form` is "json", "text" for a terminal, or "trouble": only warnings and errors, as text.
    """

    def __init__(
        self,
        health: Health,
        metrics: Metrics,
        form: str,
        stream: TextIO = sys.stderr,
        recorder: Recorder | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self.health = health
        self.metrics = metrics
        self.recorder = recorder or Recorder()
        self._clean = (redaction or Redaction(())).foreign
        self._form = form
        self._stream = stream
        self._line = ""
        self._rates: dict[str, tuple[float, float, float]] = {}
        metrics.set("build_info", 1, version=__version__)
        metrics.set("up", 1)

    def starting(self, queries: Iterable[str]) -> None:
        """Note that the service is about to start these queries."""
        for query in queries:
            self.health.expect(query)
            self.metrics.set("query_active", 0, query=query)
            self.metrics.set("query_finished", 0, query=query)
            self.recorder.starting(query)
        self.say("info", "starting", queries=list(queries))

    def waiting(self, query: str, reason: str) -> None:
        """Note that Kafka does not answer; the query waits without a limit."""
        reason = self._clean(reason)
        self.health.wait(query, reason)
        self.metrics.set("query_active", 0, query=query)
        self.recorder.waiting(query, reason)
        self.say("warning", "waiting for Kafka", query=query, reason=reason)

    def started(self, query: str) -> None:
        """Note that the query runs."""
        self.health.started(query)
        self.metrics.set("query_active", 1, query=query)
        self.metrics.set("query_started_timestamp_seconds", time.time(), query=query)
        self.recorder.started(query)
        self.say("info", "started", query=query)

    def upgraded(self, query: str, kept: int, dropped: Sequence[str], notes: Sequence[str]) -> None:
        """Note that the query differs from the one that wrote the checkpoint, and continues with the state of `kept`
        operators; that of others is `dropped`."""
        more = {"dropped": ", ".join(dropped)} if dropped else {}
        more |= {"note": self._clean("; ".join(notes))} if notes else {}
        self.say("info", "the query has changed and continues with its state", query=query, operators_kept=kept, **more)

    def counted(self, query: str, report: Mapping[str, Any]) -> None:
        """Add the metrics of one batch."""
        task_metrics = TaskMetrics(**report["metrics"])
        absorb(self.metrics, query, task_metrics)
        self.recorder.counted(query, report["batch"], task_metrics.counts, report["samples"])
        self._clear()
        self._print(report["lines"])

    def batch(self, query: str, progress: Progress) -> None:
        """Note that a batch is done."""
        self.health.completed(query)
        self.metrics.add("batches_total", 1, query=query)
        self.metrics.observe("batch_duration_seconds", progress.seconds, query=query)
        self.metrics.observe("state_commit_duration_seconds", progress.state_commit, query=query)
        self.metrics.set("last_batch_completed_timestamp_seconds", progress.ended, query=query)
        for phase, seconds in progress.phases.items():
            self.metrics.observe("batch_phase_duration_seconds", seconds, query=query, phase=phase)
        for read in progress.reads:
            place = {"query": query, "source": read.source, "topic": read.topic, "partition": str(read.partition)}
            self.metrics.set("kafka_offset", read.last, kind="read", **place)
            self._end(place, read.end)
        self.recorder.batch(query, progress, self.metrics.total("state_rows", query=query))
        self._show(query, progress)

    def ends(self, query: str, source: str, offsets: Offsets) -> None:
        """Note the current end offsets of the topics of a source."""
        for topic, partitions in offsets.items():
            for partition, offset in partitions.items():
                self._end({"query": query, "source": source, "topic": topic, "partition": str(partition)}, offset)

    def failed(self, query: str, error: str, attempt: int, wait: float, full: str = "") -> None:
        """Note that the query failed and will be restarted in `wait` seconds; `full` is all that is known of the
        error."""
        error, full = self._clean(error), self._clean(full)
        self.health.fail(query, error)
        self.metrics.add("batch_failures_total", 1, query=query)
        self.metrics.set("query_active", 0, query=query)
        self.recorder.failed(query, error, full or error, attempt, wait)
        self.say("error", "batch failed", query=query, attempt=attempt, retry_in_seconds=wait, error=error)

    def topics_added(self, query: str, table: str, topics: Sequence[str]) -> None:
        """Note new topics that match the pattern of a table."""
        self.say("info", "new topics are read", query=query, table=table, topics=", ".join(topics))

    def topics_wait(self, query: str, table: str, topics: Sequence[str]) -> None:
        """Note new topics that match the pattern of a table and are not read before the next start."""
        self.say(
            "warning",
            "new topics are not read yet",
            query=query,
            table=table,
            topics=", ".join(topics),
            hint="the first batch was planned without them: start the service again when it is done",
        )

    def reads_first(self, query: str, table: str, awaited: Sequence[str]) -> None:
        """Note that a table waits until the tables that its rows meet have been read; an empty list: it waits no
        longer."""
        if awaited:
            self.say("info", "a table waits until others are read", query=query, table=table, first=", ".join(awaited))
        else:
            self.say("info", "a table has waited and is read", query=query, table=table)

    def rolls_forward(self, query: str, first: int, last: int) -> None:
        """Note that the checkpoint is an older copy; batches `first` to `last`, which are committed, are repeated."""
        self.say("warning", "the checkpoint is an older copy and rolls forward", query=query, first=first, last=last)

    def replanned(self, query: str, batch: int, before: int, rows: int) -> None:
        """Note that a batch did not fit into memory and is replanned, with at most `rows` records of a table."""
        self.metrics.add("batches_replanned_total", 1, query=query)
        self.say("warning", "batch is replanned", query=query, batch=batch, rows_before=before, rows=rows)

    def learned(self, query: str, topic: str, size: int) -> None:
        """Note that a topic has refused a record of this many bytes: rows of that size are dead letters from now on."""
        self.say("warning", "the record limit of a topic is learned", query=query, topic=topic, bytes=size)

    def kept_plan(self, query: str, reason: str) -> None:
        """Note that a batch that did not fit into memory is repeated unchanged."""
        self.say("warning", "batch is kept as it is", query=query, reason=self._clean(reason))

    def start_clock(self, query: str, ahead: float, doubt: str, hint: str) -> None:
        """Note by how many seconds the machine's clock seems to be `ahead` as the query first starts; without a
        `doubt` it does not."""
        self.metrics.set("clock_ahead_seconds", ahead, query=query)
        if doubt:
            self.say("warning", "the clock may be wrong", query=query, reason=doubt, hint=hint)

    def clock_set_back(self, by: str) -> None:
        """Note that the service ends, since the machine's clock was set back by a duration, in words, at once."""
        self.say(
            "error",
            "the clock was set back",
            by=by,
            reason="what waits for Kafka would wait longer by as much",
            hint="start the service again; it continues from its checkpoint",
        )

    def skipped(self, query: str, source: str, topic: str, records: int) -> None:
        """Note records that were skipped by hand since the checkpoint was made."""
        self.metrics.set("skipped_records", records, query=query, source=source, topic=topic)
        self.say("warning", "records were skipped by hand", query=query, source=source, topic=topic, records=records)

    def at(self, query: str, point: Hashable | None) -> None:
        """Note that the query's batch has reached `point`; None: no batch runs."""
        self.health.point(query, point)

    def gave_up(self, query: str, error: str, full: str = "", *, alone: bool = True) -> None:
        """Note that the query will not be restarted; `full` is all that is known of the error, if that is more. Unless
        it is `alone`, the others of the service continue."""
        error, full = self._clean(error), self._clean(full)
        if alone:
            self.health.die(error)
        else:
            self.health.give_up(query, error)
        self.metrics.set("query_active", 0, query=query)
        self.recorder.gave_up(query, error, full or error)
        self.say("error", "gave up", query=query, error=error)

    def finished(self, query: str) -> None:
        """Note that every source of the query has ended and its last batch is done."""
        self.health.finish(query)
        self.metrics.set("query_active", 0, query=query)
        self.metrics.set("query_finished", 1, query=query)
        self.metrics.forget("kafka_offset", query=query)  # what lies behind the end of a bounded table is no lag
        self.recorder.finished(query)
        self.say("info", "finished", query=query)

    def stopping(self) -> None:
        """Note that the service ends."""
        self.health.stop()
        self.recorder.stopping()
        self.say("info", "stopping")

    def say(self, level: str, event: str, **fields: Any) -> None:
        """Write one log line."""
        if self._form == "trouble" and level == "info":
            return
        if self._form == "json":
            stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": stamp, "level": level, "event": event, **fields}, default=str)
        else:
            line = f"{event} " + " ".join(f"{k}={v}" for k, v in fields.items())
        self._clear()
        self._write(f"{line}\n")

    def jvm_says(self, line: str) -> None:
        """Log a line that the JVM, or a Python process that it started, wrote for people."""
        line = self._clean(line)
        if self._form == "json":
            self.say("warning", "jvm", line=line)
            return
        self._clear()
        self._write(f"{line}\n")

    def _end(self, place: Mapping[str, str], offset: int) -> None:
        """Keep the maximum: end offsets arrive from two sources and out of order."""
        known = self.metrics.value("kafka_offset", kind="end", **place)
        self.metrics.set("kafka_offset", max(offset, known), kind="end", **place)

    def _show(self, query: str, progress: Progress) -> None:
        """The progress line of a terminal, or one JSON line a batch that had rows."""
        batch, rows, seconds = progress.batch, sum(progress.rows), progress.seconds
        lag = int(self.metrics.total("kafka_consumer_lag", query=query))
        if self._form == "json":
            if rows:
                self.say("info", "batch", query=query, batch=batch, rows=rows, seconds=seconds, lag=lag)
            return
        if self._form != "text" or not self._stream.isatty():
            return
        written = int(self.metrics.total("output_records_total"))
        read = int(self.metrics.total("input_records_total"))
        state = int(self.metrics.total("state_rows"))
        self._line = (
            f"{query}: batch {batch} in {seconds:.2f} s | in {read:,} rows | out {written:,}"
            f" | lag {lag:,}{self._watermark(query)} | state {state:,} rows"
        )
        self._write("\r\x1b[2K" + self._line)

    def _watermark(self, query: str) -> str:
        """The oldest watermark of the query's operators, as a part of the progress line."""
        marks = [
            seconds
            for labels, seconds in self.metrics.samples("watermark_timestamp_seconds")
            if labels["query"] == query and 0 < seconds < _END_OF_TIME
        ]
        if not marks:
            return ""
        return f" | watermark {datetime.fromtimestamp(min(marks), UTC):%Y-%m-%d %H:%M:%S}"

    def _print(self, lines: Iterable[str]) -> None:
        """Print the rows of 'print' tables; they are dropped once their reader has ended (`tailrace run ... |
        head`)."""
        try:
            for line in lines:
                print(line, flush=True)
        except OSError:
            with suppress(OSError, ValueError):  # the rest of its buffer has to go somewhere when the process ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.say("warning", "nobody reads the standard output any more: rows of 'print' tables are dropped")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # nobody reads the log any more: the queries continue
            print(text, end="", file=self._stream, flush=True)

    def _clear(self) -> None:
        if self._line:
            self._write("\r\x1b[2K")
            self._line = ""
