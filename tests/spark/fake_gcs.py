"""As much of Google Cloud Storage as Hadoop's client asks for, kept in memory.

The client knows one address, https://storage.googleapis.com, but it can be given a proxy. The proxy here leads to this
store instead, with a certificate that the test makes and the client is made to trust.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from service.host.machine import find_java
from tests.spark.store_requests import RequestLog, StoreHandler

HOST = "storage.googleapis.com"
PASSWORD = "changeit"
_TIME = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class Question:
    """A request: what is asked, of which path, with which query and headers."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {k: v[0] for k, v in parse_qs(urlsplit(self.target).query, keep_blank_values=True).items()}


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(value: Any, status: int = 200) -> Answer:
    """JSON."""
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json; charset=UTF-8"})


def refused(status: int) -> Answer:
    """An error as the client reads it."""
    reason = {404: "notFound", 412: "conditionNotMet"}.get(status, "invalid")
    return as_json(
        {"error": {"code": status, "message": reason, "errors": [{"message": reason, "reason": reason}]}}, status
    )


class StateStore:
    """Objects by bucket/name, each with the number of its generation."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[int, bytes]] = {}
        self.requests = RequestLog()
        self._generation = 1
        self._uploads: dict[str, tuple[str, bytearray]] = {}
        self._lock = threading.RLock()

    def answer(self, asked: Question) -> Answer:
        """The answer to one request; of a batch, to each request in it."""
        if asked.path.startswith("/batch"):
            return self._batch(asked)
        if asked.path == "/token":
            return as_json({"access_token": "token", "expires_in": 3600, "token_type": "Bearer"})
        found = re.fullmatch(r"(/upload)?/(?:download/)?storage/v1/b/([^/]+)(/o)?(?:/(.+))?", asked.path)
        if found is None:
            return refused(400)
        upload, bucket, objects, name = found.groups()
        self._note(asked, upload is not None, name)
        with self._lock:
            if upload:
                return self._upload(asked, bucket)
            if name is None:
                return (
                    self._list(asked, bucket)
                    if objects
                    else as_json({"kind": "storage#bucket", "name": bucket, "id": bucket})
                )
            return self._object(asked, bucket, name)

    def _note(self, asked: Question, upload: bool, name: str | None) -> None:
        """Count a request by what it is for: an upload once, however many requests its bytes take."""
        query, agent = asked.query, asked.headers.get("user-agent", "")
        if upload:
            if asked.method == "POST":
                self.requests.note("PUT", query.get("name") or _name_sent(asked), agent)
        elif name is None:
            self.requests.note("LIST", query.get("prefix", ""), agent)
        else:
            source, verb, target = (*re.split("/(rewriteTo|moveTo)/", unquote(name)), "", "")[:3]
            kind = "COPY" if verb else "DELETE" if asked.method == "DELETE" else "HEAD"
            kind = "GET" if query.get("alt") == "media" else kind
            self.requests.note(kind, target.partition("/o/")[2] if verb else source, agent)

    def _object(self, asked: Question, bucket: str, name: str) -> Answer:
        source, verb, target = (*re.split("/(rewriteTo|moveTo)/", name), "", "")[:3]
        key = f"{bucket}/{unquote(source)}"
        if key not in self.objects:
            return refused(404)
        generation, data = self.objects[key]
        if verb:
            to, _, called = target.rpartition("o/")
            written = self._write(f"{to.removeprefix('b/').rstrip('/') or bucket}/{unquote(called)}", data, asked)
            if verb == "moveTo" and written.status == 200:
                del self.objects[key]
            return written if verb == "moveTo" or written.status != 200 else _rewritten(written, len(data))
        if asked.method == "DELETE":
            del self.objects[key]
            return Answer(204)
        return (
            self._media(asked, data, generation) if asked.query.get("alt") == "media" else as_json(self._described(key))
        )

    def _media(self, asked: Question, data: bytes, generation: int) -> Answer:
        span = asked.headers.get("range")
        headers = {"x-goog-generation": str(generation)}  # without it the client waits for ever
        if span is None:
            return Answer(200, data, headers)
        first, _, last = span.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        return Answer(206, data[start : end + 1], headers | {"Content-Range": f"bytes {start}-{end}/{len(data)}"})

    def _upload(self, asked: Question, bucket: str) -> Answer:
        query = asked.query
        if asked.method == "PUT":
            key, data = self._uploads[query["upload_id"]]
            data += asked.body
            if asked.headers.get("content-range", "").endswith("/*"):
                return Answer(308, headers={"Range": f"bytes=0-{len(data) - 1}"} if data else {})
            return self._write(key, bytes(data), Question("PUT", "/", {}))
        if query["uploadType"] == "multipart":
            described, content = _parts(asked)
            return self._write(f"{bucket}/{query.get('name') or json.loads(described)['name']}", content, asked)
        key = f"{bucket}/{query.get('name') or json.loads(asked.body)['name']}"
        if query.get("ifGenerationMatch") == "0" and key in self.objects:
            return refused(412)
        identifier = f"u{len(self._uploads)}"
        self._uploads[identifier] = (key, bytearray())
        host = asked.headers.get("host", HOST)
        scheme = "http" if host.startswith("127.") else "https"
        return Answer(headers={"Location": f"{scheme}://{host}/upload/storage/v1/b/{bucket}/o?upload_id={identifier}"})

    def _write(self, key: str, data: bytes, asked: Question) -> Answer:
        if asked.query.get("ifGenerationMatch") == "0" and key in self.objects:
            return refused(412)
        self._generation += 1
        self.objects[key] = (self._generation, data)
        return as_json(self._described(key))

    def _described(self, key: str) -> dict[str, Any]:
        generation, data = self.objects[key]
        bucket, _, name = key.partition("/")
        times = {"timeCreated": _TIME, "updated": _TIME}
        numbers = {"generation": str(generation), "metageneration": "1", "size": str(len(data))}
        return {"kind": "storage#object", "bucket": bucket, "name": name, "id": key, "etag": "x", **times, **numbers}

    def _list(self, asked: Question, bucket: str) -> Answer:
        query = asked.query
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        items, prefixes = [], set()
        for key in sorted(key for key in self.objects if key.startswith(f"{bucket}/{prefix}")):
            name = key.partition("/")[2]
            inside, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            if cut:
                prefixes.add(f"{prefix}{inside}{delimiter}")
            if not cut or (query.get("includeTrailingDelimiter") == "true" and name in prefixes):
                items.append(self._described(key))
        limit = int(query.get("maxResults", 1000))
        return as_json({"kind": "storage#objects", "items": items[:limit], "prefixes": sorted(prefixes)})

    def _batch(self, asked: Question) -> Answer:
        lines = [b"--batch"]
        for number, part in enumerate(_parts(asked)):
            head, _, rest = part.partition(b"\r\n")
            method, target, _ = head.decode().split(" ")
            headers, _, body = rest.partition(b"\r\n\r\n")
            got = self.answer(Question(method, target, _headers(headers), body))
            shown = "".join(f"{name}: {value}\r\n" for name, value in got.headers.items())
            lines.append(
                f"Content-Type: application/http\r\nContent-ID: response-{number + 1}\r\n\r\n"
                f"HTTP/1.1 {got.status} OK\r\n{shown}Content-Length: {len(got.body)}\r\n\r\n".encode()
                + got.body
                + b"\r\n--batch"
            )
        return Answer(200, b"\r\n".join(lines) + b"--\r\n", {"Content-Type": "multipart/mixed; boundary=batch"})


def _name_sent(asked: Question) -> str:
    """The name of the object of an upload, where the description of it says so."""
    described = _parts(asked)[0] if asked.query.get("uploadType") == "multipart" else asked.body
    return str(json.loads(described)["name"])


def _rewritten(written: Answer, size: int) -> Answer:
    """What is said of a copy that is done."""
    whole = {"kind": "storage#rewriteResponse", "done": True, "objectSize": str(size), "totalBytesRewritten": str(size)}
    return as_json(whole | {"resource": json.loads(written.body)})


def _headers(text: bytes) -> dict[str, str]:
    return {name.lower(): value for name, value in BytesParser().parsebytes(text).items()}


def _parts(asked: Question) -> list[bytes]:
    """The contents of the parts of a body."""
    found = re.search(r'boundary="?([^";]+)', asked.headers["content-type"])
    assert found is not None
    pieces = asked.body.split(b"--" + found[1].encode())[1:-1]
    return [piece.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for piece in pieces]


@dataclass(frozen=True)
class FakeGcs:
    """A running store: what it holds, the options by which a JVM comes here, a key to log in with, and the address that
    others come to."""

    store: StateStore
    java_options: str
    key_file: Path
    plain: str

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings with which `gs` is this store."""
        return {
            "spark.hadoop.fs.gs.project.id": "test",
            "spark.hadoop.fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "spark.hadoop.fs.gs.auth.service.account.json.keyfile": str(self.key_file),
            "spark.hadoop.fs.gs.storage.root.url": self.plain,
            "spark.driver.extraJavaOptions": self.java_options,
        }


@contextmanager
def fake_gcs(folder: Path) -> Iterator[FakeGcs]:
    """Start a store; certificates and keys are put into `folder`."""
    store = StateStore()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(store))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    trust = _certificate(folder)
    proxy = _proxy(folder, server.server_address[1])
    options = f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={proxy.getsockname()[1]}"
    trusted = f"-Djavax.net.ssl.trustStore={trust} -Djavax.net.ssl.trustStorePassword={PASSWORD}"
    try:
        key_file = _login(folder, server.server_address[1])
        yield FakeGcs(store, f"{options} {trusted}", key_file, f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        proxy.close()
        server.shutdown()
        server.server_close()


def _certificate(folder: Path) -> Path:
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    name = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", *files, *name)
    store = folder / "trusted.p12"
    keytool = Path(find_java()).resolve().parent / "keytool"
    kept = ["-keystore", store, "-storetype", "PKCS12", "-storepass", PASSWORD]
    _run(keytool, "-importcert", "-noprompt", "-alias", "test", "-file", folder / "cert.pem", *kept)
    return store


def _login(folder: Path, port: int) -> Path:
    """The key file of a service account whose tokens are given out here."""
    account = {
        "type": "service_account",
        "project_id": "test",
        "private_key_id": "1",
        "private_key": (folder / "key.pem").read_text(),
        "client_email": "test@test.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"http://127.0.0.1:{port}/token",
    }
    path = folder / "account.json"
    path.write_text(json.dumps(account))
    return path


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def _handler(store: StateStore) -> type[StoreHandler]:
    class Handler(StoreHandler):
        def _serve(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = store.answer(Question(self.command, self.path, headers, self.body()))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

    return Handler


def _proxy(folder: Path, port: int) -> socket.socket:
    """A proxy that ends TLS and leads everything to `port`; its listening socket."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=lead, args=(client,), daemon=True).start()

    def lead(client: socket.socket) -> None:
        try:
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            secured = context.wrap_socket(client, server_side=True)
            upstream = socket.create_connection(("127.0.0.1", port))
        except OSError:
            client.close()
            return
        threading.Thread(target=_pump, args=(secured, upstream), daemon=True).start()
        _pump(upstream, secured)

    threading.Thread(target=accept, daemon=True).start()
    return listener


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    for each in (source, target):
        each.close()


if __name__ == "__main__":
    with fake_gcs(Path(sys.argv[1])) as running:
        print(running.plain, flush=True)
        sys.stdin.read()
