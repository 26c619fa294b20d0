"""Whether the service is alive and ready, judged from what its batches did; and the HTTP server that says so."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from traceback import print_exc
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest


class Health:
    """What is known of each query. A service that waits for Kafka is alive and not ready."""

    def __init__(self, stall_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall_seconds = stall_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._completed: set[str] = set()
        self._expected: set[str] = set()
        self._finished: set[str] = set()
        self._waiting: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._last_sign: dict[str, float] = {}
        self._stopping = False
        self._dead = ""

    def expect(self, query: str) -> None:
        """A query will run."""
        with self._lock:
            self._expected.add(query)

    def sign(self, query: str) -> None:
        """The query started, or completed a batch or a look for new data."""
        with self._lock:
            self._last_sign[query] = self._clock()
            self._waiting.pop(query, None)

    def completed(self, query: str) -> None:
        """A batch of the query is done."""
        with self._lock:
            self._completed.add(query)
            self._failed.pop(query, None)

    def wait(self, query: str, why: str) -> None:
        """The query waits for Kafka."""
        with self._lock:
            self._waiting[query] = why
            self._last_sign.pop(query, None)

    def fail(self, query: str, why: str) -> None:
        """The query failed and will be started again."""
        with self._lock:
            self._failed[query] = why
            self._last_sign.pop(query, None)

    def finish(self, query: str) -> None:
        """All the query's sources have ended."""
        with self._lock:
            self._finished.add(query)
            self._last_sign.pop(query, None)

    def stop(self) -> None:
        """The service is about to end."""
        with self._lock:
            self._stopping = True

    def die(self, why: str) -> None:
        """Nothing will run any more."""
        with self._lock:
            self._dead = why

    def live(self) -> tuple[bool, dict[str, str]]:
        """Whether a restart would not help, and what is known."""
        with self._lock:
            if self._dead:
                return False, {"service": self._dead}
            now = self._clock()
            stalled = {
                q: f"no batch for {now - t:.0f} s" for q, t in self._last_sign.items() if now - t > self._stall_seconds
            }
            return not stalled, stalled

    def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether every query has done its first batch and none is in trouble."""
        with self._lock:
            troubles = dict(self._waiting) | self._failed
            for query in self._expected - self._completed - set(troubles) - self._finished:
                troubles[query] = "the first batch is not done"
            if self._stopping:
                troubles["service"] = "shutting down"
            if self._dead:
                troubles["service"] = self._dead
            if not self._expected:
                troubles["service"] = "starting"
            return not troubles, troubles


TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What a GET is answered with."""

    body: bytes
    kind: str
    headers: Mapping[str, str] = MappingProxyType({})
    status: int = 200


Answers = Mapping[str, Callable[[], Answer]]
"""By path, what makes the answer. It runs in a thread of its own and must not wait for anything."""


class HttpServer:
    """Serves /livez, /readyz, /metrics and `more` in threads of its own, from cached state."""

    def __init__(
        self,
        host: str,
        port: int,
        health: Health,
        registry: CollectorRegistry,
        more: Answers = MappingProxyType({}),
    ) -> None:
        answers: Answers = {
            "/livez": lambda: _verdict(*health.live()),
            "/readyz": lambda: _verdict(*health.ready()),
            "/metrics": lambda: Answer(generate_latest(registry), CONTENT_TYPE_LATEST),
            **more,
        }
        unknown = Answer(f"try {', '.join(answers)}\n".encode(), TEXT, status=404)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    answer = answers.get(self.path.partition("?")[0], lambda: unknown)()
                except Exception:
                    print_exc()
                    answer = Answer(b"this cannot be answered; the log says why\n", TEXT, status=500)
                with suppress(ConnectionError):  # who asked may be gone
                    self.send_response(answer.status)
                    for name, value in {
                        "Content-Type": answer.kind,
                        "Content-Length": str(len(answer.body)),
                        **answer.headers,
                    }.items():
                        self.send_header(name, value)
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(answer.body)

            do_HEAD = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Probes come every few seconds: they are not logged."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def _verdict(good: bool, details: Mapping[str, str]) -> Answer:
    body = json.dumps({"ok": good, "details": details}).encode() + b"\n"
    return Answer(body, "application/json", status=200 if good else 503)
