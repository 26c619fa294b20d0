"""A Kubernetes cluster of processes: a control plane, two nodes, and folders that are shared volumes."""

from __future__ import annotations

from pathlib import Path

from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.images import unpacked
from tests.kubernetes.cluster.kubectl import Kubectl, Object
from tests.kubernetes.cluster.node import Node
from tests.kubernetes.waiting import until

BASE_IMAGE = "localhost/base:1"
IMAGE = "localhost/tailrace:test"
STORAGE_CLASS = "shared"


class Cluster:
    """Everything is real but the storage: a volume is a folder of this machine that every node sees, as with NFS."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.control_plane = ControlPlane(folder)
        self.kubectl = Kubectl(self.control_plane.admin)
        self.audit_log = self.control_plane.audit_log
        self.nodes = [Node(number, folder, self.control_plane.authority, BASE_IMAGE) for number in (1, 2)]
        self._volumes = 0

    def start(self) -> None:
        """Start it, and return when both nodes take pods."""
        self.control_plane.start()
        images = unpacked()
        for node in self.nodes:
            node.start(images)
        self.kubectl.apply(_STORAGE_CLASS)
        until("both nodes are ready", lambda: len(self._ready()) == len(self.nodes), 180, self._report)

    def stop(self) -> None:
        """End it."""
        for node in self.nodes:
            node.stop()
        self.control_plane.stop()

    def namespace(self, name: str, enforce: str = "restricted") -> Kubectl:
        """Make a namespace that enforces a Pod Security level; kubectl for it."""
        label = {"pod-security.kubernetes.io/enforce": enforce}
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": label}})
        return self.kubectl.within(name)

    def volume(self, namespace: str, claim: str) -> Path:
        """Make a volume that only the claim of this name can bind; its folder."""
        self._volumes += 1
        folder = self._folder / f"volume-{self._volumes}"
        folder.mkdir()
        here = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
        spec = {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "claimRef": {"namespace": namespace, "name": claim},
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        name = {"name": f"volume-{self._volumes}"}
        self.kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": name, "spec": spec})
        return folder

    def _ready(self) -> list[Object]:
        return [node for node in self.kubectl.list("nodes") if _condition(node, "Ready")]

    def _report(self) -> str:
        return "\n".join(node.tail() for node in self.nodes)


def _condition(thing: Object, kind: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", [])
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


_STORAGE_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": STORAGE_CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner",
}
