"""Every supported scenario renders to what Kubernetes takes, in pods that the strictest namespace admits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from service.cli import main
from tests.chart.rendering import CHART, SCENARIOS, Object, pods, rendered, scenario

OLDEST_AND_NEWEST = ("1.31.0", "1.37.0")
UID = 185

each_scenario = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


@each_scenario
@pytest.mark.parametrize("version", OLDEST_AND_NEWEST)
def test_every_object_is_what_kubernetes_takes(path: Path, version: str):
    objects = rendered(path)
    assert objects
    for found in objects + [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods(objects)]:
        if not found["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(found, version, strict=True)


@each_scenario
def test_every_pod_is_admitted_by_a_restricted_namespace(path: Path):
    for pod in pods(rendered(path)):
        assert list(refused_by_restricted(pod["spec"])) == []


@each_scenario
def test_no_container_of_ours_can_write_to_its_image(path: Path):
    for pod in pods(rendered(path)):
        first = pod["spec"]["containers"][0]
        assert first["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["spec"]["securityContext"]["runAsUser"] == UID


@each_scenario
def test_objects_have_names_and_labels_of_their_own(path: Path):
    objects = rendered(path)
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    assert len(set(names)) == len(names)
    for found in objects:
        if not found["metadata"]["name"].endswith("-more"):  # the scenario's own
            assert found["metadata"]["labels"]["app.kubernetes.io/instance"] == "tailrace"


@each_scenario
def test_helm_has_nothing_to_say(path: Path):
    report = helm_python.lint(CHART, scenario(path), strict=True)
    found = [m for m in report["messages"] if "icon is recommended" not in m["error"]]
    assert (found, report["errors"]) == ([], [])


@each_scenario
def test_the_pipeline_is_right(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sql = scenario(path)["pipeline"].get("sql")
    if sql is not None:
        (tmp_path / "pipeline.sql").write_text(sql)
        assert main(["check", str(tmp_path / "pipeline.sql")]) == 0, capsys.readouterr().err


def test_a_service_of_the_releases_name_puts_nothing_into_an_environment():
    """TAILRACE_PORT=tcp://... would be refused as an unknown setting."""
    for path in SCENARIOS:
        assert all(pod["spec"]["enableServiceLinks"] is False for pod in pods(rendered(path)))


def refused_by_restricted(spec: Object) -> list[str]:
    """What the Pod Security Standard `restricted` forbids, as its page lists it."""
    wrong = [f"host namespace {name}" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    wrong += [f"volume {v['name']}" for v in spec.get("volumes", []) if not set(v) & kinds]
    pod: dict[str, Any] = spec.get("securityContext", {})
    for each in spec["containers"] + spec.get("initContainers", []):
        own = each.get("securityContext", {})
        both = pod | own
        rules = {
            "privilege escalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"],
            "added capabilities": set(own.get("capabilities", {}).get("add", [])) <= {"NET_BIND_SERVICE"},
            "privileged": not own.get("privileged"),
            "root": both.get("runAsNonRoot") is True and both.get("runAsUser") != 0,
            "seccomp": both.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "host ports": not any("hostPort" in port for port in each.get("ports", [])),
            "proc mount": own.get("procMount", "Default") == "Default",
        }
        wrong += [f"{each['name']}: {rule}" for rule, kept in rules.items() if not kept]
    return wrong


@pytest.mark.parametrize(
    "change",
    [
        {"hostNetwork": True},
        {"securityContext": {}},
        {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
        {"containers": [{"name": "bare"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_pod_that_is_not_restricted_is_distinguished(change: Object):
    (path,) = (p for p in SCENARIOS if p.name.startswith("01-"))
    spec = next(iter(pods(rendered(path))))["spec"]
    assert refused_by_restricted(spec) == []
    assert refused_by_restricted(yaml.safe_load(yaml.safe_dump(spec)) | change) != []
