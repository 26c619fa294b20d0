"""A release of the chart, installed and changed with helm as an operator does it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.kubernetes.cluster.cluster import IMAGE
from tests.kubernetes.cluster.kubectl import Kubectl, Object, run
from tests.kubernetes.cluster.tools import ROOT, tool
from tests.kubernetes.waiting import until

NAME = "tailrace"
CHART = ROOT / "charts" / "tailrace"
DRIVER = f"{NAME}-0"

Values = Mapping[str, Any]


class Release:
    """The release `tailrace` of one namespace. `values` are given with every install and upgrade."""

    claim = f"{NAME}-checkpoint"

    def __init__(self, kubectl: Kubectl, folder: Path, values: Values) -> None:
        self.kubectl = kubectl
        self.namespace = kubectl.namespace
        self._folder = folder
        self._values: Values = values
        self.refused: set[str] = set()
        """What the API server must have refused to the driver at the end, as "verb resource"."""
        self.perhaps_refused: set[str] = set()
        """What it may have refused beside that."""

    def install(self, changes: Values | None = None) -> None:
        """`helm install`; it returns when the objects are there."""
        self._with_values("install", changes)

    def upgrade(self, changes: Values | None = None) -> None:
        """`helm upgrade`; values that were changed before stay changed."""
        self._with_values("upgrade", changes)

    def uninstall(self) -> None:
        """`helm uninstall`, and wait until the pods are gone."""
        self.helm("uninstall", NAME, "--ignore-not-found")
        until("the pods are gone", lambda: not self.kubectl.list("pods"), explain=self.report)

    def stop(self) -> None:
        """End the driver as it ends when its node is drained: it still has its rights."""
        if self.kubectl.get("statefulset", NAME):
            self.kubectl("scale", f"statefulset/{NAME}", "--replicas=0")
            until("the pods are gone", lambda: not self.kubectl.list("pods"), explain=self.report)

    def remove(self) -> None:
        """End what runs, uninstall it, and remove the namespace and all that is left in it."""
        self.stop()
        self.uninstall()
        self.kubectl("delete", "namespace", self.namespace, "--wait=false")

    def helm(self, *arguments: str) -> str:
        """Run helm in the namespace of the release."""
        folders = {f"HELM_{kind}_HOME": str(self._folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        own = [f"--kubeconfig={self.kubectl.kubeconfig}", f"--namespace={self.kubectl.namespace}"]
        return run([tool("helm"), *arguments, *own], environment=os.environ | folders)

    def driver(self) -> Object | None:
        """The driver's pod, if there is one."""
        return self.kubectl.get("pod", DRIVER)

    def executors(self) -> list[Object]:
        """The pods of executors that run and are not about to end."""
        pods = self.kubectl.list("pods", {"app.kubernetes.io/component": "executor"})
        running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
        return [pod for pod in running if "deletionTimestamp" not in pod["metadata"]]

    def ready(self) -> bool:
        """Whether the driver's pod is ready."""
        driver = self.driver()
        conditions = driver["status"].get("conditions", []) if driver else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def until_ready(self, seconds: float = 240) -> None:
        """Wait until the driver's pod is ready."""
        until("the driver is ready", self.ready, seconds, self.report)

    def pod_id(self) -> str:
        """What tells the driver's pod from the one before it; empty while there is none."""
        driver = self.driver()
        return str(driver["metadata"]["uid"]) if driver else ""

    def restarts(self) -> int:
        """How often the driver's container was started again."""
        driver = self.driver()
        statuses = driver["status"].get("containerStatuses", []) if driver else []
        return sum(int(status["restartCount"]) for status in statuses)

    def until_replaced(self, before: str, seconds: float = 240) -> None:
        """Wait until another pod than the one of this id is ready."""
        until("a new driver is ready", lambda: self.pod_id() not in ("", before) and self.ready(), seconds, self.report)

    def objects(self) -> set[str]:
        """Everything that is in the namespace and was not there before the release: "kind/name"."""
        kinds = self.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
        kinds = [kind for kind in kinds if not kind.startswith("events")]
        found = self.kubectl("get", ",".join(kinds), "--output=name", "--ignore-not-found").split()
        return set(found) - {"configmap/kube-root-ca.crt", "serviceaccount/default"}

    def until_only_the_volume_is_left(self) -> None:
        """Wait until all that the release made is gone, but for the claim of its checkpoint."""
        left = {f"persistentvolumeclaim/{self.claim}"}
        until("only the volume is left", lambda: self.objects() == left, explain=lambda: str(self.objects()))

    def log(self) -> str:
        """What the driver has said, and the container before it."""
        return self.kubectl.log(DRIVER, previous=True) + self.kubectl.log(DRIVER)

    def http(self, path: str) -> str:
        """What the driver answers, whatever the status; empty where nobody listens yet."""
        driver = self.driver()
        address = driver["status"].get("podIP") if driver else None
        try:
            with urlopen(f"http://{address}:8080{path}", timeout=10) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""

    def report(self) -> str:
        """The state of the namespace, for whoever has to find out what went wrong."""
        pods = self.kubectl("get", "pods", "--output=wide")
        events = self.kubectl("get", "events", "--sort-by=.lastTimestamp")
        return f"{pods}\n{events[-4000:]}\n{self.log()[-6000:]}"

    def _with_values(self, verb: str, changes: Values | None) -> None:
        self._values = merged(self._values, changes or {})
        file = self._folder / "values.json"
        file.write_text(json.dumps(self._values))
        self.helm(verb, NAME, str(CHART), f"--values={file}")


def merged(values: Values, changes: Values) -> Values:
    """`values` with `changes`, nested ones one by one."""
    both = {
        name: merged(values[name], change) if isinstance(change, Mapping) and name in values else change
        for name, change in changes.items()
    }
    return {**values, **both}


class MakeRelease(Protocol):
    """Makes a release with these values, in a namespace of its own."""

    def __call__(self, values: Values = MappingProxyType({})) -> Release: ...


EXECUTORS: Values = {"mode": "kubernetes", "persistence": {"accessModes": ["ReadWriteMany"]}}
"""What `mode: kubernetes` needs."""

repository, _, tag = IMAGE.rpartition(":")
SMALL: Values = {
    "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
    "config": {
        "TAILRACE_TOPICS__CREATE": "true",
        "TAILRACE_BATCH__TICK": "500ms",
        "TAILRACE_RETRY__BACKOFF": "500ms",
    },
    "spark": {
        "partitions": 4,
        "driver": {"memory": "640m"},
        "executor": {"cores": 1, "memory": "512m", "memoryOverhead": "768m", "cpuRequest": "100m"},
    },
    "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "3Gi"}},
    "terminationGracePeriodSeconds": 30,
}
"""Values for a machine that has little to share."""
