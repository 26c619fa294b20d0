"""`make audit`: everything that others have written is asked for, and what the database says decides."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scripts import audit
from scripts.components import LOCKS, ROOT, Component, components, held, locked, named
from service.archives import load

DUCKDB = Component("PyPI", "duckdb", "2.0.0")
LOG4J = Component("Maven", "org.apache.logging.log4j:log4j-core", "2.14.1")
LOG4SHELL = {
    "id": "GHSA-jfh8-c2jp-5v3q",
    "aliases": ["CVE-2021-44228"],
    "summary": "Remote code injection in Log4j",
    "affected": [
        {"package": {"name": LOG4J.name}, "ranges": [{"events": [{"introduced": "2.13.0"}, {"fixed": "2.15.0"}]}]},
        {"package": {"name": "another"}, "ranges": [{"events": [{"fixed": "9"}]}]},
    ],
}


class Database:
    """A database that knows of some advisories, and tells them over two pages."""

    def __init__(self) -> None:
        self.advisories: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.asked: list[tuple[str, str, str]] = []

    def answer(self, path: str, question: dict[str, Any]) -> dict[str, Any] | None:
        if path == "/v1/querybatch":
            return {"results": [self._known(each) for each in question["queries"]]}
        known = {a["id"]: a for each in self.advisories.values() for a in each}
        return known.get(path.removeprefix("/v1/vulns/"))

    def _known(self, query: dict[str, Any]) -> dict[str, Any]:
        package, version = query["package"], query["version"]
        self.asked.append((package["ecosystem"], package["name"], version))
        advisories = self.advisories.get((package["name"], version), [])
        page = int(query.get("page_token", "0"))
        reply: dict[str, Any] = {"vulns": [{"id": a["id"]} for a in advisories[page : page + 1]]} if advisories else {}
        return reply | ({"next_page_token": str(page + 1)} if page + 1 < len(advisories) else {})


@pytest.fixture
def database() -> Iterator[tuple[Database, str]]:
    known = Database()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._say(known.answer(self.path, question))

        def do_GET(self) -> None:
            self._say(known.answer(self.path, {}))

        def _say(self, reply: dict[str, Any] | None) -> None:
            body = json.dumps(reply).encode()
            self.send_response(404 if reply is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield known, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {DUCKDB: ("requirements.lock",), LOG4J: ("some.jar", "service/archives/kafka.toml")}
    monkeypatch.setattr(audit, "components", lambda: (found, ()))


@pytest.mark.usefixtures("shipped")
def test_nothing_known_is_fine(database, capsys):
    known, url = database
    assert audit.main(["--url", url]) == 0
    assert known.asked == [("PyPI", "duckdb", "2.0.0"), ("Maven", LOG4J.name, "2.14.1")]
    assert capsys.readouterr().out == "2 components, 0 known vulnerabilities that are not accepted\n"


@pytest.mark.usefixtures("shipped")
def test_what_is_known_is_reported_with_where_it_is_and_what_repairs_it(database, capsys):
    known, url = database
    known.advisories[LOG4J.name, LOG4J.version] = [LOG4SHELL, LOG4SHELL | {"id": "GHSA-second", "aliases": []}]
    assert audit.main(["--url", url]) == 1
    printed = capsys.readouterr().out
    assert "log4j-core 2.14.1: CVE-2021-44228, GHSA-jfh8-c2jp-5v3q\n  Remote code injection in Log4j" in printed
    assert "repaired in 2.15.0\n" in printed
    assert "in some.jar, service/archives/kafka.toml" in printed
    assert "2 known vulnerabilities that are not accepted" in printed


@pytest.mark.usefixtures("shipped")
def test_what_is_accepted_is_reported_with_its_reason_and_what_needs_no_acceptance_too(database, capsys, monkeypatch):
    known, url = database
    known.advisories[LOG4J.name, LOG4J.version] = [LOG4SHELL]
    monkeypatch.setattr(audit, "accepted", lambda: {"CVE-2021-44228": "nobody logs what comes from outside"})
    assert audit.main(["--url", url]) == 0
    assert "accepted: nobody logs what comes from outside" in capsys.readouterr().out
    known.advisories.clear()
    assert audit.main(["--url", url]) == 0
    assert "accepts CVE-2021-44228, which concerns nothing any more" in capsys.readouterr().err


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_database_that_does_not_answer_is_no_clean_bill(path: str, database, capsys):
    url = database[1] + path if path else "http://127.0.0.1:9"
    assert audit.main(["--url", url]) == 3
    captured = capsys.readouterr()
    assert "nothing was audited" in captured.err
    assert captured.out == ""


def test_all_that_is_locked_and_listed_is_asked_for_and_every_archive_of_spark_has_a_name():
    found, unnamed = components()
    assert unnamed == ()
    for lock in LOCKS:
        wanted = [line.split()[0].split("==") for line in (ROOT / lock).read_text().splitlines() if "==" in line[:60]]
        assert {Component("PyPI", *each) for each in wanted} <= found.keys()
    for name in ("spark", "kafka", "s3a", "gs"):
        for archive in load(name).archives:
            assert Component("Maven", f"{archive.group}:{archive.artifact}", archive.version) in found
    assert any(name.startswith("org.apache.spark:spark-core") for _, name, _ in found)
    assert "requirements.lock" in found[DUCKDB]


def test_a_package_of_the_lock_is_read_without_its_marker_and_hashes():
    text = 'colorama==0.4.6 ; sys_platform == "win32" \\\n    --hash=sha256:00\nduckdb==2.0.0 \\\n    # via -r x==1\n'
    assert list(locked(text)) == [Component("PyPI", "colorama", "0.4.6"), DUCKDB]


def test_an_archive_shows_what_it_holds(tmp_path: Path):
    jar = tmp_path / "whole-1.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/maven/g/a/pom.properties", "#Made\ngroupId=g\nartifactId = a\nversion=1.2\n")
        archive.writestr("META-INF/maven/g/b/pom.properties", "groupId=g\n")
        archive.writestr("g/a/pom.properties", "groupId=no\nartifactId=no\nversion=0\n")
    assert list(held(jar)) == [Component("Maven", "g:a", "1.2")]


@pytest.mark.parametrize(
    ("stem", "name", "version"),
    [
        (
            "netty-transport-native-epoll-4.2.13.Final-linux-x86_64",
            "io.netty:netty-transport-native-epoll",
            "4.2.13.Final",
        ),
        ("zstd-jni-1.5.7-7", "com.github.luben:zstd-jni", "1.5.7-7"),
        ("scala-library-2.13.18", "org.scala-lang:scala-library", "2.13.18"),
        ("chill_2.13-0.10.0", "com.twitter:chill_2.13", "0.10.0"),
        ("hive-exec-2.3.10-core", "org.apache.hive:hive-exec", "2.3.10"),
    ],
)
def test_an_archive_without_a_description_is_known_by_its_name(stem: str, name: str, version: str):
    assert named(stem) == Component("Maven", name, version)
    assert named(f"x{stem}") is None
