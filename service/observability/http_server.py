"""The HTTP server for probes, metrics and the status page; any client may connect, and none can keep others out."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from traceback import print_exc
from types import MappingProxyType
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from service.observability.health import Health

TEXT = "text/plain; charset=utf-8"


class HttpAnswer(NamedTuple):
    """The answer to a GET."""

    body: bytes
    kind: str
    headers: Mapping[str, str] = MappingProxyType({})
    status: int = 200


Answers = Mapping[str, Callable[[], HttpAnswer]]
"""The functions that make the answers, by path. They run in a thread of their own and must not wait for anything."""


CONNECTIONS = 64
"""The most connections at a time. The oldest is closed for a new one: a client that opens many and sends nothing cannot
keep a probe from being answered."""

PATIENCE = 10.0
"""Seconds that a connection may take to send its request, or to read its answer."""

FRESH = 1.0
"""Seconds for which an expensive answer is reused: however many clients ask, it is made once."""


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
            "/metrics": _once(lambda: HttpAnswer(generate_latest(registry), CONTENT_TYPE_LATEST)),
            **{path: _once(make) for path, make in more.items()},
        }
        unknown = HttpAnswer(f"try {', '.join(answers)}\n".encode(), TEXT, status=404)

        class Handler(BaseHTTPRequestHandler):
            timeout = PATIENCE

            def do_GET(self) -> None:
                try:
                    answer = answers.get(self.path.partition("?")[0], lambda: unknown)()
                except Exception:
                    print_exc()
                    answer = HttpAnswer(b"this cannot be answered; the log says why\n", TEXT, status=500)
                with suppress(OSError):  # the client may have left, or be too slow
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

        self._server = _Server((host, port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[Any, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a connection: a closed one concerns only its client."""
        if not isinstance(sys.exception(), OSError):
            print_exc()


def _once(make: Callable[[], HttpAnswer]) -> Callable[[], HttpAnswer]:
    """`make`, called once in `FRESH` seconds; requests in between get the same answer."""
    lock, kept = threading.Lock(), list[tuple[float, HttpAnswer]]()

    def answer() -> HttpAnswer:
        with lock:
            if not kept or time.monotonic() - kept[0][0] > FRESH:
                kept[:] = [(time.monotonic(), make())]
            return kept[0][1]

    return answer


def _verdict(good: bool, details: Mapping[str, str]) -> HttpAnswer:
    body = json.dumps({"ok": good, "details": details}).encode() + b"\n"
    return HttpAnswer(body, "application/json", status=200 if good else 503)
