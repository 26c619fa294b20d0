"""A client of the REST protocol of Confluent's Schema Registry, as Karapace, Apicurio and Redpanda speak it, too:
https://docs.confluent.io/platform/current/schema-registry/develop/api.html

It needs a few calls: the schema of an id and those that it refers to, the id of a schema under a subject, and its
registration. A schema never
changes under its id, so each is asked for once in a process.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import quote

from service.schema_registry.errors import RegistryConfigError, RegistryUnreachable, UnknownSchema
from service.schema_registry.registry_settings import RegistrySettings

_TIMEOUT = 10.0
"""Seconds for one answer."""

_ROUNDS = 4
"""The number of attempts at every URL before the registry counts as unreachable; then the batch is repeated."""

_PAUSE = 0.25
"""Seconds before the second round, doubled for each further one."""

_MISSING_FOR = 30.0
"""Seconds for which an id that the registry does not have is not requested again."""

_DEEPEST = 32
"""The nesting of schemas that refer to schemas: deeper than this they are circular."""

_CONTENT = "application/vnd.schemaregistry.v1+json"

_SCHEMA_NOT_FOUND = (40403, 40402, 404)
_SUBJECT_NOT_FOUND = (40401, 40403, 404)
"""The error codes for an unknown schema and an unknown subject: Confluent's, Apicurio's, and an answer without a
code."""


class ReferredSchema(NamedTuple):
    """A schema that another one refers to, under the name that it has there."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """The text of a schema and its kind: AVRO, JSON or PROTOBUF; and those that it refers to, each behind those that it
    needs itself."""

    text: str
    kind: str
    references: tuple[ReferredSchema, ...] = ()


class SchemaRegistry:
    """One registry, for all threads of a process. Every call raises RegistryUnreachable where it does not answer and
    RegistryConfigError where it refuses."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._known: dict[int, RegisteredSchema] = {}
        self._missing: dict[int, float] = {}
        self._ids: dict[tuple[str, str, str], int] = {}
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema of an id. Raises UnknownSchema where there is none."""
        with self._lock:
            found = self._known.get(number)
            if found is None:
                found = self._known[number] = self._patiently(number)
            return found

    def _patiently(self, number: int) -> RegisteredSchema:
        """Ask a few times: a follower may not have received a schema yet that its leader has accepted."""
        if time.monotonic() < self._missing.get(number, 0):
            raise _unknown(number)
        for turn in range(_ROUNDS):
            try:
                return self._fetch(number)
            except UnknownSchema:
                if turn < _ROUNDS - 1:
                    time.sleep(_PAUSE * 2**turn)
        self._missing[number] = time.monotonic() + _MISSING_FOR
        raise _unknown(number)

    def id_of(self, subject: str, text: str, kind: str, *, register: bool) -> int:
        """Return the id of a schema under a subject; if it is not there, `register` adds it."""
        with self._lock:
            key = (subject, text, kind)
            if key not in self._ids:
                self._ids[key] = self._register(subject, text, kind) if register else self._find(subject, text, kind)
            return self._ids[key]

    def _fetch(self, number: int) -> RegisteredSchema:
        status, answer = self._call("GET", f"/schemas/ids/{number}", None)
        if status == 200 and isinstance(answer.get("schema"), str):
            found: dict[ReferredSchema, None] = {}
            self._follow(answer, found, _DEEPEST)
            return RegisteredSchema(answer["schema"], answer.get("schemaType") or "AVRO", tuple(found))
        if status == 404 and answer.get("error_code", 404) in _SCHEMA_NOT_FOUND:
            raise _unknown(number)
        raise self._refused(status, answer)

    def _follow(self, answer: dict[str, Any], found: dict[ReferredSchema, None], deepest: int) -> None:
        """Add the schemas that one refers to."""
        for each in answer.get("references") or ():
            path = f"/subjects/{quote(str(each['subject']), safe='')}/versions/{each['version']}"
            status, other = self._call("GET", path, None)
            if status == 404 or deepest == 0:
                raise UnknownSchema(f"the schema refers to {each['subject']}, version {each['version']}")
            if status != 200 or not isinstance(other.get("schema"), str):
                raise self._refused(status, other)
            self._follow(other, found, deepest - 1)
            found[ReferredSchema(str(each.get("name", "")), other["schema"])] = None

    def _register(self, subject: str, text: str, kind: str) -> int:
        status, answer = self._call("POST", f"/subjects/{quote(subject, safe='')}/versions", _body(text, kind))
        if status == 200 and isinstance(answer.get("id"), int):
            return int(answer["id"])
        if status == 409:
            raise RegistryConfigError(
                f'the schema of the table is not compatible with subject "{subject}"\n'
                f"  detail: {answer.get('message', '')}\n"
                "  hint:   change the table's columns, or the compatibility of the subject"
            )
        raise self._refused(status, answer)

    def _find(self, subject: str, text: str, kind: str) -> int:
        status, answer = self._call("POST", f"/subjects/{quote(subject, safe='')}", _body(text, kind))
        if status == 200 and isinstance(answer.get("id"), int):
            return int(answer["id"])
        if status == 404 and answer.get("error_code", 404) in _SUBJECT_NOT_FOUND:
            raise RegistryConfigError(
                f'the schema of the table is not registered under subject "{subject}"\n'
                "  hint:   register it, or set 'auto.register.schemas' to 'true'"
            )
        raise self._refused(status, answer)

    def _refused(self, status: int, answer: dict[str, Any]) -> RegistryConfigError:
        why = answer.get("message") or "the answer is not that of a schema registry"
        hint = "\n  hint:   check basic-auth.user-info or bearer-auth.token" if status in (401, 403) else ""
        return RegistryConfigError(f"the schema registry at {self._name()} refuses: {status} {why}{hint}")

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The status and the answer of the first URL that answers; a server error or an overload does not count."""
        why = ""
        for turn in range(_ROUNDS):
            if turn:
                time.sleep(_PAUSE * 2 ** (turn - 1))
            for url in self._settings.urls:
                try:
                    status, answer = self._ask(method, url + path, body)
                except (OSError, HTTPException) as error:
                    reason = getattr(error, "reason", error)
                    if isinstance(reason, ssl.SSLCertVerificationError):
                        raise RegistryConfigError(
                            f"the certificate of the schema registry at {self._name()} is not trusted: "
                            f"{reason.verify_message}\n  hint:   set ssl.truststore.location to a PEM file of its CA"
                        ) from error
                    why = "no answer in time" if isinstance(reason, socket.timeout) else str(reason)
                    continue
                if status < 500 and status not in (408, 429):
                    return status, answer
                why = f"it answers {status} {answer.get('message', '')}".rstrip()
        raise RegistryUnreachable(f"the schema registry at {self._name()} cannot be reached: {why}")

    def _ask(self, method: str, url: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers(), method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT, context=self._context(url)) as answer:
                return answer.status, _object(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _object(error.read())

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": f"{_CONTENT}, application/json", "Content-Type": _CONTENT}
        if self._settings.user_info is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(self._settings.user_info.encode()).decode()}"
        elif self._settings.token is not None:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        return headers

    def _context(self, url: str) -> ssl.SSLContext | None:
        if not url.lower().startswith("https:"):
            return None
        if self._tls is None:
            try:
                made = ssl.create_default_context(cafile=self._settings.truststore)
                if self._settings.keystore is not None:
                    made.load_cert_chain(self._settings.keystore, password=self._settings.keystore_password)
            except (OSError, ValueError) as error:
                raise RegistryConfigError(
                    f"the certificates for the schema registry cannot be read: {error}\n"
                    "  hint:   ssl.truststore.location and ssl.keystore.location are PEM files"
                ) from error
            self._tls = made
        return self._tls

    def _name(self) -> str:
        return ", ".join(self._settings.urls)


@cache
def registry(settings: RegistrySettings) -> SchemaRegistry:
    """Return the client of a registry, one a process."""
    return SchemaRegistry(settings)


def _unknown(number: int) -> UnknownSchema:
    return UnknownSchema(f"the schema registry has no schema {number}")


def _body(text: str, kind: str) -> dict[str, Any]:
    return {"schema": text} if kind == "AVRO" else {"schema": text, "schemaType": kind}


def _object(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
