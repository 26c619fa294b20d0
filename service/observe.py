"""What the service tells the outside while it runs: metrics, health, logs, and a progress line on a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from service import __version__
from service.health import Health
from service.metrics import Metrics


class Observer:
    """One place that every event passes through. `form` is "json", "text" for a terminal, or "trouble": only
    what is wrong, as text."""

    def __init__(self, health: Health, metrics: Metrics, form: str, stream: TextIO = sys.stderr) -> None:
        self.health = health
        self.metrics = metrics
        self._form = form
        self._stream = stream
        self._line = ""
        self._rates: dict[str, tuple[float, float, float]] = {}
        metrics.set("build_info", 1, version=__version__)
        metrics.set("up", 1)

    def starting(self, queries: Iterable[str]) -> None:
        """The service is about to start these queries."""
        for query in queries:
            self.health.expect(query)
            self.metrics.set("query_active", 0, query=query)
        self.say("info", "starting", queries=list(queries))

    def waiting(self, query: str, reason: str) -> None:
        """Kafka does not answer; the query waits for as long as it takes."""
        self.health.wait(query, reason)
        self.metrics.set("query_active", 0, query=query)
        self.say("warning", "waiting for Kafka", query=query, reason=reason)

    def started(self, query: str) -> None:
        """The query runs."""
        self.health.sign(query)
        self.metrics.set("query_active", 1, query=query)
        self.say("info", "started", query=query)

    def heard(self, query: str, told: Mapping[str, Any]) -> None:
        """The figures of one batch."""
        counts, levels, lows = told["figures"]
        self.metrics.absorb(query, counts, levels)
        now = time.time()
        for sample, value in lows.items():
            operator = sample.partition('operator="')[2].rstrip('"}')
            if abs(value) < 2**61:
                self.metrics.set("watermark_timestamp_seconds", value / 1000, query=query, operator=operator)
                self.metrics.set("watermark_lag_seconds", now - value / 1000, query=query, operator=operator)
        self._clear()
        for line in told["lines"]:
            print(line, flush=True)

    def batch(self, query: str, progress: Mapping[str, Any]) -> None:
        """A batch is done, as Spark reports it."""
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        self.health.sign(query)
        self.health.completed(query)
        self.metrics.add("batches_total", 1, query=query)
        self.metrics.batch_duration.labels(query).observe(seconds)
        self.metrics.set("last_batch_completed_timestamp_seconds", time.time(), query=query)
        for phase, milliseconds in progress["durationMs"].items():
            if phase != "triggerExecution":
                self.metrics.add("batch_phase_seconds_total", milliseconds / 1000, query=query, phase=f"spark_{phase}")
        lag = self._lag(query, progress)
        self._show(query, progress, seconds, lag)

    def failed(self, query: str, error: str, attempt: int, wait: float) -> None:
        """The query failed and will be started again in `wait` seconds."""
        self.health.fail(query, error)
        self.metrics.add("batch_failures_total", 1, query=query)
        self.metrics.set("query_active", 0, query=query)
        self.say("error", "batch failed", query=query, attempt=attempt, retry_in_seconds=wait, error=error)

    def gave_up(self, query: str, error: str) -> None:
        """The query will not be started again."""
        self.health.die(error)
        self.metrics.set("query_active", 0, query=query)
        self.say("error", "gave up", query=query, error=error)

    def finished(self, query: str) -> None:
        """Every source of the query has ended and its last batch is done."""
        self.health.finish(query)
        self.metrics.set("query_active", 0, query=query)
        self.say("info", "finished", query=query)

    def stopping(self) -> None:
        """The service ends."""
        self.health.stop()
        self.say("info", "stopping")

    def say(self, level: str, event: str, **fields: Any) -> None:
        """One log line."""
        if self._form == "trouble" and level == "info":
            return
        if self._form == "json":
            stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": stamp, "level": level, "event": event, **fields}, default=str)
        else:
            line = f"{event} " + " ".join(f"{k}={v}" for k, v in fields.items())
        self._clear()
        print(line, file=self._stream, flush=True)

    def _lag(self, query: str, progress: Mapping[str, Any]) -> int:
        lag = 0
        for source in progress["sources"]:
            end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
            for topic, partitions in end.items():
                for partition, offset in partitions.items():
                    last = latest.get(topic, {}).get(partition, offset)
                    labels = {"query": query, "topic": topic, "partition": str(partition)}
                    self.metrics.set("kafka_consumer_lag", max(0, last - offset), **labels)
                    self.metrics.set("kafka_offset", offset, kind="read", **labels)
                    self.metrics.set("kafka_offset", last, kind="end", **labels)
                    lag += max(0, last - offset)
        return lag

    def _show(self, query: str, progress: Mapping[str, Any], seconds: float, lag: int) -> None:
        """The progress line of a terminal, or one JSON line a batch that had rows."""
        rows = sum(int(s["numInputRows"]) for s in progress["sources"][:-1])  # the last one is the tick
        if self._form == "json":
            if rows:
                self.say("info", "batch", query=query, batch=progress["batchId"], rows=rows, seconds=seconds, lag=lag)
            return
        if self._form != "text" or not self._stream.isatty():
            return
        written = int(self.metrics.total("output_records_total"))
        read = int(self.metrics.total("input_records_total"))
        state = int(self.metrics.total("state_rows"))
        self._line = (
            f"{query}: batch {progress['batchId']} in {seconds:.2f} s | in {read:,} rows | out {written:,}"
            f" | lag {lag:,} | state {state:,} rows"
        )
        print("\r\x1b[2K" + self._line, end="", file=self._stream, flush=True)

    def _clear(self) -> None:
        if self._line:
            print("\r\x1b[2K", end="", file=self._stream, flush=True)
            self._line = ""


def _offsets(text: object) -> dict[str, dict[str, int]]:
    """Offsets of a Kafka source; nothing for other sources."""
    value = json.loads(text) if isinstance(text, str) else text
    if not isinstance(value, dict) or "now" in value:
        return {}
    return {t: p for t, p in value.items() if isinstance(p, dict)}
