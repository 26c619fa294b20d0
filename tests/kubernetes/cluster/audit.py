"""What service accounts asked of the API server, and what it answered: its audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    """One request: who asked for which verb on which resource, and whether RBAC allowed it."""

    user: str
    namespace: str
    verb: str
    resource: str
    name: str
    allowed: bool

    def __str__(self) -> str:
        return f"{self.user} {self.verb} {self.resource} {self.namespace}/{self.name}"


def requests(log: Path, namespace: str) -> Iterator[Request]:
    """Every request so far that the service accounts of a namespace made, without one that is still being written."""
    prefix = f"system:serviceaccount:{namespace}:"
    for line in log.read_text().split("\n")[:-1]:
        event = json.loads(line)
        user, target = event["user"]["username"], event.get("objectRef", {})
        if user.startswith(prefix):
            yield Request(
                user=user.removeprefix(prefix),
                namespace=target.get("namespace", ""),
                verb=event["verb"],
                resource="/".join(filter(None, (target.get("resource", ""), target.get("subresource", "")))),
                name=target.get("name", ""),
                allowed=event.get("annotations", {}).get("authorization.k8s.io/decision") != "forbid",
            )
