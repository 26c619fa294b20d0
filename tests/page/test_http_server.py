"""Nobody keeps others from being answered: neither who says nothing nor who asks for much."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry

from service.observability import http_server
from service.observability.health import Health
from service.observability.http_server import CONNECTIONS, HttpAnswer, HttpServer


def status(port: int, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def serving(**pages: object) -> Iterator[int]:
    answers = {f"/{name}": make for name, make in pages.items()}
    server = HttpServer("127.0.0.1", 0, Health(600), CollectorRegistry(), answers)  # type: ignore[arg-type]
    try:
        yield server.port
    finally:
        server.close()


def test_connections_that_say_nothing_do_not_keep_a_probe_from_its_answer():
    before = threading.active_count()
    with serving() as port, ExitStack() as silent:
        for _ in range(4 * CONNECTIONS):
            silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        assert status(port, "/livez") == 200
        assert threading.active_count() - before < CONNECTIONS + 20


def test_a_connection_that_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_server, "PATIENCE", 0.2)
    with serving() as port, socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
        assert silent.recv(1) == b""


def test_probes_are_answered_while_the_page_is_being_made():
    busy, done = threading.Event(), threading.Event()

    def slow() -> HttpAnswer:
        busy.set()
        done.wait(30)
        return HttpAnswer(b"page", "text/html")

    with serving(page=slow) as port:
        readers = [threading.Thread(target=status, args=(port, "/page")) for _ in range(8)]
        for reader in readers:
            reader.start()
        assert busy.wait(10)
        assert status(port, "/livez") == 200
        done.set()
        for reader in readers:
            reader.join(10)


def test_however_many_ask_an_answer_is_made_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("service.observability.http_server.FRESH", 600.0)
    made: list[int] = []

    def page() -> HttpAnswer:
        made.append(1)
        return HttpAnswer(b"page", "text/html")

    with serving(page=page) as port:
        assert [status(port, "/page") for _ in range(5)] == [200] * 5
    assert len(made) == 1
