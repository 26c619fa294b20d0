"""kubectl, as an operator uses it, with answers as Python values."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster.tools import tool

Object = dict[str, Any]


_ANY: Mapping[str, str] = {}


class Refused(Exception):
    """The command has failed; the text is what it said."""


class Kubectl:
    """kubectl for who the kubeconfig says; `kubectl("drain", "node-1")` returns what it prints."""

    def __init__(self, kubeconfig: Path, namespace: str = "default") -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace

    def within(self, namespace: str) -> Kubectl:
        """The same in another namespace."""
        return Kubectl(self.kubeconfig, namespace)

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        """Run a command; `given` is its standard input. Raises `Refused`."""
        own = [f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}"]
        return run([tool("kubectl"), *own, *arguments], given)

    def get(self, kind: str, name: str) -> Object | None:
        """One object, None if there is none."""
        found = self("get", kind, name, "--ignore-not-found", "--output=json")
        return json.loads(found) if found else None

    def list(self, kind: str, labels: Mapping[str, str] = _ANY) -> list[Object]:
        """The objects of a kind with these labels, by name."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        found: list[Object] = json.loads(self("get", kind, f"--selector={selector}", "--output=json"))["items"]
        return sorted(found, key=lambda each: str(each["metadata"]["name"]))

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects."""
        self("apply", "--filename=-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def log(self, pod: str, *, previous: bool = False) -> str:
        """What a pod has said, or the container before the one that runs now; empty if there is none."""
        try:
            return self("logs", pod, "--all-containers", f"--previous={'true' if previous else 'false'}")
        except Refused:
            return ""


def run(command: list[str], given: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a command of an operator. Raises `Refused` with what it said."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode != 0:
        raise Refused(f"{Path(command[0]).name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
