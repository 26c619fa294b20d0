"""The health of the service, alive and ready, judged by its batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable


class Health:
    """The health of each query.

    A service that waits for Kafka is alive and not ready. A query is stuck when its batch has not advanced for more
    than `stall_seconds`. A query without a batch is idle, however long, and the first batch after a start may restore a
    large state: neither counts as stuck.
    """

    def __init__(self, stall_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall_seconds = stall_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._completed: set[str] = set()
        self._expected: set[str] = set()
        self._finished: set[str] = set()
        self._waiting: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._started: dict[str, int] = {}
        self._points: dict[str, tuple[Hashable, float]] = {}
        self._given_up: dict[str, str] = {}
        self._stopping = False
        self._dead = ""

    def expect(self, query: str) -> None:
        """Note that a query will run."""
        with self._lock:
            self._expected.add(query)

    def started(self, query: str) -> None:
        """Note that the query runs, from where it was."""
        with self._lock:
            self._waiting.pop(query, None)
            self._points.pop(query, None)
            self._started[query] = 0

    def point(self, query: str, point: Hashable | None) -> None:
        """Note that the query's batch has reached `point`, any value that changes; None says that no batch runs."""
        with self._lock:
            if point is None or not self._started.get(query):
                self._points.pop(query, None)
            elif self._points.get(query, (None, 0.0))[0] != point:
                self._points[query] = point, self._clock()

    def completed(self, query: str) -> None:
        """Note that a batch of the query is done."""
        with self._lock:
            self._completed.add(query)
            self._failed.pop(query, None)
            self._points.pop(query, None)
            self._started[query] = self._started.get(query, 0) + 1

    def wait(self, query: str, why: str) -> None:
        """Note that the query waits for Kafka."""
        with self._lock:
            self._waiting[query] = why
            self._points.pop(query, None)

    def fail(self, query: str, why: str) -> None:
        """Note that the query failed and will be restarted."""
        with self._lock:
            self._failed[query] = why
            self._points.pop(query, None)

    def finish(self, query: str) -> None:
        """Note that all the query's sources have ended."""
        with self._lock:
            self._finished.add(query)
            self._points.pop(query, None)

    def give_up(self, query: str, why: str) -> None:
        """Note that the query is not restarted; the others continue."""
        with self._lock:
            self._given_up[query] = why
            self._failed.pop(query, None)
            self._points.pop(query, None)

    def stop(self) -> None:
        """Note that the service is about to end."""
        with self._lock:
            self._stopping = True

    def die(self, why: str) -> None:
        """Note that nothing will run any more."""
        with self._lock:
            self._dead = why

    def live(self) -> tuple[bool, dict[str, str]]:
        """Return whether the service is alive, so that a restart would not help, and the reason."""
        with self._lock:
            if self._dead:
                return False, {"service": self._dead}
            now = self._clock()
            stuck = {
                q: f"the batch has not moved for {now - t:.0f} s"
                for q, (_, t) in self._points.items()
                if now - t > self._stall_seconds
            }
            return not stuck, stuck

    def ready(self) -> tuple[bool, dict[str, str]]:
        """Return whether every query has done its first batch and none has failed, and the reason."""
        with self._lock:
            troubles = dict(self._waiting) | self._failed | self._given_up
            for query in self._expected - self._completed - set(troubles) - self._finished:
                troubles[query] = "the first batch is not done"
            if self._stopping:
                troubles["service"] = "shutting down"
            if self._dead:
                troubles["service"] = self._dead
            if not self._expected:
                troubles["service"] = "starting"
            return not troubles, troubles
