"""As much of S3 as Hadoop's client asks for, kept in memory: objects, ranges, copies, lists, uploads in parts."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.spark.store_requests import RequestLog, StoreHandler

Objects = dict[str, bytes]

KEYS_A_PAGE = 1000


@contextmanager
def fake_s3(requests: RequestLog | None = None) -> Iterator[tuple[str, Objects]]:
    """A server: its address, and what it holds by bucket/key; `requests` receives what it is asked."""
    held: Objects = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(held, RequestLog() if requests is None else requests))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", held
    finally:
        server.shutdown()
        server.server_close()


def s3_settings(address: str) -> dict[str, str]:
    """Return Spark's settings with which `s3a` is the server at `address`."""
    own = {
        "endpoint": address,
        "endpoint.region": "nowhere-1",
        "path.style.access": "true",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "access.key": "key",
        "secret.key": "secret",
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in own.items()}


def unchunked(body: bytes) -> bytes:
    """The payload of a body that a client signs piece by piece: size;signature, then the piece; trailers at the end."""
    whole = bytearray()
    while body:
        head, _, rest = body.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if size == 0:
            break
        whole += rest[:size]
        body = rest[size + 2 :]
    return bytes(whole)


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def _handler(held: Objects, requests: RequestLog) -> type[StoreHandler]:
    lock = threading.Lock()
    uploads: dict[str, dict[int, bytes]] = {}

    class Handler(StoreHandler):
        def _asked(self) -> tuple[str, dict[str, str]]:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            key = unquote(parts.path).lstrip("/")
            kind = "LIST" if "list-type" in query else "COPY" if "x-amz-copy-source" in self.headers else self.command
            name = query.get("prefix", "") if kind == "LIST" else key.partition("/")[2]
            requests.note("DELETE" if "delete" in query else kind, name, self.headers.get("User-Agent", ""))
            return key, query

        def _body(self) -> bytes:
            body = self.body()
            signed = self.headers.get("x-amz-content-sha256", "").startswith("STREAMING-")
            return unchunked(body) if signed else body

        def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _xml(self, text: str, status: int = 200) -> None:
            self._answer(
                status, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(), Content_Type="application/xml"
            )

        def _missing(self, key: str) -> None:
            self._xml(f"<Error><Code>NoSuchKey</Code><Message>none</Message><Key>{escape(key)}</Key></Error>", 404)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            key, query = self._asked()
            if "/" not in key.rstrip("/"):
                self._list(key.rstrip("/"), query) if "list-type" in query else self._answer(200)
                return
            data = held.get(key)
            if data is None:
                self._missing(key)
                return
            headers = {"ETag": _tag(data), "Last_Modified": formatdate(usegmt=True), "Accept_Ranges": "bytes"}
            asked = self.headers.get("Range")
            if asked is None:
                self._answer(200, data, **headers)
                return
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or len(data) - 1), len(data) - 1)
            self._answer(206, data[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(data)}", **headers)

        def _list(self, bucket: str, query: dict[str, str]) -> None:
            prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
            after = query.get("continuation-token", query.get("start-after", ""))
            limit = int(query.get("max-keys", KEYS_A_PAGE))
            with lock:
                keys = sorted(key.partition("/")[2] for key in held if key.startswith(f"{bucket}/{prefix}"))
            shown: dict[str, bool] = {}
            for key in keys:
                folder, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                name = f"{prefix}{folder}{delimiter}" if found else key
                if name > after:
                    shown[name] = bool(found)
            page = list(shown)[:limit]
            rows = [
                f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
                if shown[name]
                else f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                f"<ETag>x</ETag><Size>{len(held.get(f'{bucket}/{name}', b''))}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>"
                for name in page
            ]
            more = len(shown) > len(page)
            token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
            self._xml(
                f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
                f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(rows)}"
                "</ListBucketResult>"
            )

        def do_PUT(self) -> None:
            key, query = self._asked()
            source = unquote(self.headers.get("x-amz-copy-source", "")).lstrip("/")
            body = self._body()
            if source:
                if source not in held:
                    self._missing(source)
                    return
                body = held[source]
            if "uploadId" in query:
                uploads[query["uploadId"]][int(query["partNumber"])] = body
            else:
                with lock:
                    if self.headers.get("If-None-Match") == "*" and key in held:
                        self._xml("<Error><Code>PreconditionFailed</Code><Message>there</Message></Error>", 412)
                        return
                    held[key] = body
            if source:
                self._xml(f"<CopyObjectResult><ETag>{_tag(body)}</ETag></CopyObjectResult>")
            else:
                self._answer(200, ETag=_tag(body))

        def do_POST(self) -> None:
            key, query = self._asked()
            body = self._body()
            if "delete" in query:
                names = [e.text or "" for e in ElementTree.fromstring(body).iter() if e.tag.rpartition("}")[2] == "Key"]
                with lock:
                    for name in names:
                        held.pop(f"{key.rstrip('/')}/{name}", None)
                self._xml("<DeleteResult></DeleteResult>")
            elif "uploads" in query:
                identifier = f"u{len(uploads)}"
                uploads[identifier] = {}
                self._xml(
                    f"<InitiateMultipartUploadResult><UploadId>{identifier}</UploadId></InitiateMultipartUploadResult>"
                )
            else:
                parts = uploads.pop(query["uploadId"])
                with lock:
                    held[key] = b"".join(parts[number] for number in sorted(parts))
                self._xml(
                    f"<CompleteMultipartUploadResult><ETag>{_tag(held[key])}</ETag></CompleteMultipartUploadResult>"
                )

        def do_DELETE(self) -> None:
            key, query = self._asked()
            with lock:
                uploads.pop(query.get("uploadId", ""), None) if "uploadId" in query else held.pop(key, None)
            self._answer(204)

    return Handler
