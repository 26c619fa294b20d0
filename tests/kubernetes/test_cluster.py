"""The cluster itself: what the other tests rest on."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.kubernetes.cluster.cluster import IMAGE, Cluster
from tests.kubernetes.cluster.kubectl import Kubectl, Object, Refused
from tests.kubernetes.waiting import until

POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 185, "fsGroup": 185, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return cluster.namespace(f"test-{uuid4().hex[:8]}")


def pod(name: str, script: str, **spec: Any) -> Object:
    """A restricted pod that runs a shell script once; its volumes are mounted by their names."""
    volumes = [each["name"] for each in spec.get("volumes", [])]
    main = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-ec", script],
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in volumes],
    }
    once = {"restartPolicy": "Never", "securityContext": POD_SECURITY, "terminationGracePeriodSeconds": 1}
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**once, "containers": [main], **spec}}


def output_of(kubectl: Kubectl, name: str) -> str:
    """What a pod says until it ends."""

    def ended() -> bool:
        found = kubectl.get("pod", name)
        return found is not None and found["status"]["phase"] in ("Succeeded", "Failed")

    until(f"{name} has ended", ended, explain=lambda: kubectl("describe", "pod", name))
    return kubectl.log(name)


def test_a_restricted_pod_has_no_rights_and_writes_nowhere(kubectl: Kubectl):
    kubectl.apply(
        pod(
            "plain",
            "exec 2>&1; id -u; grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; touch /x || echo refused",
        )
    )
    assert output_of(kubectl, "plain").split() == [
        *("185", "CapBnd:", "0000000000000000", "NoNewPrivs:", "1", "Seccomp:", "2"),
        *("touch:", "cannot", "touch", "'/x':", "Read-only", "file", "system", "refused"),
    ]


def test_the_image_holds_nothing_that_only_its_build_needs(kubectl: Kubectl):
    programs = "for name in python cc gcc g++ make javac pip pip3; do command -v $name || true; done"
    files = "find /var/cache/apt /var/lib/apt/lists /opt/archives/kafka /src -type f 2>/dev/null || true"
    kubectl.apply(pod("image", f"{programs}; {files}"))
    assert output_of(kubectl, "image") == "/opt/tailrace/bin/python\n"


def test_a_pod_with_more_rights_is_not_let_in(kubectl: Kubectl):
    with pytest.raises(Refused, match="violates PodSecurity"):
        kubectl.apply(pod("root", "id", securityContext={}))


def test_a_service_is_reached_by_its_name_from_another_node(kubectl: Kubectl):
    port = {"port": 80, "targetPort": 8000}
    service = {"selector": {"app": "server"}, "ports": [port]}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": service},
        pod("server", "cd /etc && exec python -m http.server", nodeName="node-1"),
    )
    ask = "exec python -c 'from urllib.request import urlopen; print(urlopen(\"http://server/hostname\").read())'"
    kubectl.apply(pod("client", ask, nodeName="node-2", restartPolicy="OnFailure"))
    assert output_of(kubectl, "client") == "b'server\\n'\n"


def test_a_volume_is_seen_from_every_node(cluster: Cluster, kubectl: Kubectl):
    cluster.volume(kubectl.namespace, "shared")
    size = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteMany"], "resources": size, "storageClassName": "shared"}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"}, "spec": claim},
    )
    volumes = [{"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}]
    kubectl.apply(pod("writer", "echo here > /shared/file", nodeName="node-1", volumes=volumes))
    output_of(kubectl, "writer")
    kubectl.apply(pod("reader", "cat /shared/file", nodeName="node-2", volumes=volumes))
    assert output_of(kubectl, "reader") == "here\n"
