"""A small schema registry: the calls of Confluent's protocol that a client makes, and what a test wants to go wrong."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from service.schema_registry import client

Answer = tuple[int, dict[str, Any]]


@dataclass
class SmallRegistry:
    """Schemas by id, and the ids of each subject. `faults` are answers given before those of the registry, one each."""

    url: str = ""
    login: str = ""
    schemas: dict[int, tuple[str, str]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    references: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    faults: list[Answer] = field(default_factory=list)
    incompatible: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, schema: object, subject: str = "", kind: str = "AVRO", number: int | None = None) -> int:
        """Register a schema; the same one keeps its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        for known, each in self.schemas.items():
            if each == (text, kind) and number is None:
                number = known
        number = number or len(self.schemas) + 1
        self.schemas[number] = (text, kind)
        if subject and number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def answer(self, method: str, path: str, body: dict[str, Any], login: str) -> Answer:
        """What the registry says."""
        with self._lock:
            self.calls.append(f"{method} {path}")
            if self.faults:
                return self.faults.pop(0)
            if self.login and login != self.login:
                return 401, {"error_code": 401, "message": "Unauthorized"}
            match [unquote(each) for each in path.strip("/").split("/")]:
                case ["schemas", "ids", number] if method == "GET":
                    return self._schema(int(number))
                case ["subjects", subject, "versions", version] if method == "GET":
                    held = self.subjects.get(subject, [])
                    if int(version) > len(held):
                        return 404, {"error_code": 40402, "message": "Version not found"}
                    return self._schema(held[int(version) - 1])
                case ["subjects", subject, "versions"] if method == "POST":
                    if subject in self.incompatible:
                        return 409, {"error_code": 409, "message": "the new schema lacks the field id"}
                    return 200, {"id": self.add(body["schema"], subject, body.get("schemaType", "AVRO"))}
                case ["subjects", subject] if method == "POST":
                    return self._find(subject, body)
            return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _schema(self, number: int) -> Answer:
        if number not in self.schemas:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        text, kind = self.schemas[number]
        reply: dict[str, Any] = {"schema": text} if kind == "AVRO" else {"schema": text, "schemaType": kind}
        if number in self.references:
            reply["references"] = self.references[number]
        return 200, reply

    def _find(self, subject: str, body: dict[str, Any]) -> Answer:
        for number in self.subjects.get(subject, []):
            if self.schemas[number] == (body["schema"], body.get("schemaType", "AVRO")):
                return 200, {"subject": subject, "id": number, "version": 1, "schema": body["schema"]}
        code = 40403 if subject in self.subjects else 40401
        return 404, {"error_code": code, "message": "not found"}


@contextmanager
def served(registry: SmallRegistry | None = None, tls: ssl.SSLContext | None = None) -> Iterator[SmallRegistry]:
    """Serve a registry on a free port, by TLS if it is given a context."""
    known = registry or SmallRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", {})

        def do_POST(self) -> None:
            self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, method: str, body: dict[str, Any]) -> None:
            status, reply = known.answer(method, self.path, body, self._login())
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _login(self) -> str:
            kind, _, given = self.headers.get("Authorization", "").partition(" ")
            return base64.b64decode(given).decode() if kind == "Basic" else given

        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        known.url = f"{'https' if tls else 'http'}://localhost:{server.server_address[1]}"
        client.registry.cache_clear()  # the port may be that of a registry which this process has asked before
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()
