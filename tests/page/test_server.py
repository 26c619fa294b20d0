"""The page as the HTTP server answers for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from service.observability.http_server import HttpAnswer, HttpServer
from service.observability.page import answers
from tests.page.stage import COUNTS, Stage

STATIC = Path(answers.__file__).parent


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    stage = Stage(COUNTS)
    stage.start()
    stage.play("counts", {"clicks": [3]})
    server = HttpServer("127.0.0.1", 0, stage.observer.health, stage.observer.metrics.registry, stage.answers)
    yield server.port
    server.close()


@contextmanager
def asked(port: int, path: str, method: str = "GET") -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        yield connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/?from=bookmark", "text/html; charset=utf-8"),
        ("/status.json", "application/json"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
        ("/page.svg", "image/svg+xml"),
        ("/livez", "application/json"),
        ("/readyz", "application/json"),
        ("/metrics", None),
    ],
)
def test_a_path_is_answered(port: int, path: str, kind: str | None):
    with asked(port, path) as answer:
        assert answer.status == 200
        assert kind in (None, answer.headers["Content-Type"])
        assert len(answer.read()) == int(answer.headers["Content-Length"]) > 0


def test_the_page_may_load_nothing_from_outside_and_run_nothing_inline(port: int):
    with asked(port, "/") as answer:
        policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert {source for value in policy.values() for source in value.split()} <= {"'none'", "'self'"}
        assert policy["frame-ancestors"] == "'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


def test_every_link_of_the_page_is_relative_and_answered(port: int):
    with asked(port, "/") as answer:
        page = answer.read().decode()
    links = {link for link in re.findall(r'(?:href|src)="([^"]*)"', page) if not link.startswith("#")}
    assert {"page.css", "page.js", "page.svg", "status.json", "metrics"} <= links
    for link in links:
        assert not re.match(r"[a-z]+:|/", link), "it would not work below the path of a proxy"
        with asked(port, f"/{link}") as answer:
            assert answer.status == 200
    anchors = set(re.findall(r'href="#([^"]*)"', page))
    assert anchors <= set(re.findall(r'id="([^"]*)"', page))


def test_files_of_the_page_name_no_other_host():
    for name in answers.ASSETS:
        text = (STATIC / name).read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|//[a-z]|@import|url\(", text), name


def test_head_is_answered_without_a_body(port: int):
    with asked(port, "/", "HEAD") as answer:
        assert (answer.status, answer.read()) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 0


def test_a_page_that_cannot_be_made_says_so_and_the_probes_go_on(capsys: pytest.CaptureFixture[str]):
    def breaks() -> HttpAnswer:
        raise LookupError("no such step")

    stage = Stage(COUNTS)
    server = HttpServer("127.0.0.1", 0, stage.observer.health, stage.observer.metrics.registry, {"/": breaks})
    try:
        with asked(server.port, "/") as answer:
            assert (answer.status, answer.read()) == (500, b"this cannot be answered; the log says why\n")
        with asked(server.port, "/livez") as answer:
            assert answer.status == 200
    finally:
        server.close()
    assert "LookupError: no such step" in capsys.readouterr().err


def test_an_unknown_path_says_which_there_are(port: int):
    with asked(port, "/nowhere") as answer:
        assert answer.status == 404
        assert {"/,", "/status.json,", "/livez,"} <= set(answer.read().decode().split())
