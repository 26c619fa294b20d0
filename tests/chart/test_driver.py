"""The driver: one pod, which a change of what it reads replaces, and nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from service.deployment.backfill import BackfillStart
from service.settings import load
from tests.chart.rendering import (
    CHART,
    KUBERNETES,
    LOCAL,
    container,
    driver,
    environment,
    files,
    find,
    kinds,
    merged,
    mounts,
    render,
)


def rolled(before: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    """Whether an upgrade with `changes` replaces the driver's pod."""
    return driver(render(before)) != driver(render(merged(before, changes)))


def test_a_local_release_is_one_pod_with_a_volume_and_no_rights():
    objects = render(LOCAL)
    assert kinds(objects) == {"ConfigMap", "PersistentVolumeClaim", "Pod", "Service", "ServiceAccount", "StatefulSet"}
    assert driver(objects)["spec"]["automountServiceAccountToken"] is False
    assert find(objects, "StatefulSet")["spec"]["replicas"] == 1


def test_the_image_is_asked_to_run_the_pipeline():
    objects = render(merged(LOCAL, {"pipeline": {"key": "spending.sql", "job": "spending"}}))
    assert container(driver(objects))["args"] == ["run", "/etc/tailrace/pipeline/spending.sql", "--job=spending"]
    assert mounts(driver(objects))["/etc/tailrace/pipeline"]["configMap"]["name"] == "tailrace-pipeline"
    assert find(objects, "ConfigMap")["data"] == {"spending.sql": "SELECT 1;\n"}


def test_a_pipeline_is_taken_over_letter_by_letter():
    sql = "-- {{ no template }}\n\n\tSELECT 'it''s: ü', '#'  ;  \n"
    assert find(render({"pipeline": {"sql": sql}}), "ConfigMap")["data"] == {"pipeline.sql": sql}


@pytest.mark.parametrize(
    ("before", "changes", "expected"),
    [
        (LOCAL, {"pipeline": {"sql": "SELECT 2;\n"}}, True),
        (LOCAL, {"config": {"TAILRACE_BATCH__ROWS": 5}}, True),
        (LOCAL, {"resources": {"requests": {"cpu": "2"}}}, True),
        (LOCAL, {"serviceMonitor": {"enabled": True}}, False),
        (LOCAL, {"networkPolicy": {"enabled": True}}, False),
        (LOCAL, {"service": {"type": "NodePort"}}, False),
        (LOCAL, {"spark": {"executor": {"instances": 3}}}, False),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_the_pod_is_replaced_when_what_it_reads_changes(
    before: Mapping[str, Any], changes: Mapping[str, Any], expected: bool
):
    assert rolled(before, changes) is expected


@pytest.mark.parametrize(
    "changes",
    [
        {"spark": {"executor": {"instances": 3}}},
        {"spark": {"executor": {"podAnnotations": {"a": "b"}}}},
        {"spark": {"executor": {"nodeSelector": {"disk": "nvme"}}}},
    ],
    ids=["instances", "annotations", "nodes"],
)
def test_a_change_of_executors_replaces_the_driver_which_replaces_them(changes: Mapping[str, Any]):
    known = merged(KUBERNETES, {"spark": {"authentication": {"existingSecret": "known"}}})
    assert not rolled(known, {})
    assert rolled(known, changes)


def test_another_version_of_the_chart_alone_replaces_nothing():
    labels = driver(render(LOCAL))["metadata"]["labels"]
    assert "helm.sh/chart" not in labels
    assert labels["app.kubernetes.io/component"] == "driver"


def test_numbers_arrive_as_they_were_written():
    changes = {"config": {"TAILRACE_BATCH__ROWS": 2000000}, "pipeline": {"variables": {"A": 0.5, "B": True, "C": "07"}}}
    found = environment(driver(render(merged(LOCAL, changes))))
    assert found["TAILRACE_BATCH__ROWS"] == "2000000"
    assert (found["A"], found["B"], found["C"]) == ("0.5", "true", "07")


@pytest.mark.parametrize("values", [LOCAL, KUBERNETES], ids=["local", "kubernetes"])
def test_the_service_takes_every_setting_that_the_chart_makes(values: Mapping[str, Any]):
    found = environment(driver(render(values)))
    given = {name: value if isinstance(value, str) else "from the pod" for name, value in found.items()}
    assert load(given).spark.driver_memory == "1g"


def test_every_setting_that_the_chart_makes_is_refused_in_config():
    full = {
        "existingSecret": "settings",
        "kafka": {
            "bootstrapServers": "b:1",
            "sasl": {"mechanism": "OAUTHBEARER", "username": "u", "existingSecret": "s", "tokenUrl": "t", "scope": "x"},
            "tls": {"enabled": True, "ca": {"existingSecret": "c"}, "client": {"existingSecret": "c"}},
        },
    }
    made = {n for n in environment(driver(render(merged(KUBERNETES, full)))) if n.startswith("TAILRACE_")}
    own = (CHART / "templates" / "_checks.tpl").read_text()
    assert [name for name in sorted(made) if f"\n{name}: " not in own] == []


def test_a_batch_may_finish_within_the_grace_period():
    objects = render(merged(LOCAL, {"terminationGracePeriodSeconds": 300}))
    assert driver(objects)["spec"]["terminationGracePeriodSeconds"] == 300
    assert load({"TAILRACE_RETRY__GRACE": environment(driver(objects))["TAILRACE_RETRY__GRACE"]}).retry.grace == 280_000


def test_tasks_of_a_local_release_take_the_cores_that_it_is_given():
    found = environment(driver(render(merged(LOCAL, {"spark": {"driver": {"cores": 6}}}))))
    assert found["TAILRACE_SPARK__MASTER"] == "local[6,16]"


def test_probes_ask_what_the_service_answers():
    first = container(driver(render(LOCAL)))
    asked = {name: first[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert first["startupProbe"]["periodSeconds"] * first["startupProbe"]["failureThreshold"] == 300


def test_a_diagnostic_pod_runs_no_pipeline_and_is_not_probed():
    first = container(driver(render(merged(LOCAL, {"diagnosticMode": {"enabled": True}}))))
    assert (first["command"], first["args"]) == (["sleep"], ["infinity"])
    assert not any(name.endswith("Probe") for name in first)


def backfill(start: Any) -> Mapping[str, Any]:
    return {"upgrade": {"from": start}, "pipeline": {"key": "spending.sql", "job": "spending"}}


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("earliest", "earliest"),
        ("beginning", "beginning"),
        ("2024-05-01T00:00:00+02:00", "2024-05-01T00:00:00+02:00"),
        (1714521600000, "1714521600000"),
        ("1714521600000", "1714521600000"),
    ],
)
def test_what_is_new_is_filled_before_the_pipeline_runs(start: Any, message: str):
    (found,) = driver(render(merged(LOCAL, backfill(start))))["spec"]["initContainers"]
    *options, file, job = found["args"]
    assert options == ["upgrade", "--stopped", f"--from={message}"]
    assert (file, job) == ("/etc/tailrace/pipeline/spending.sql", "--job=spending")
    assert BackfillStart.of(message)


@pytest.mark.parametrize("values", [LOCAL, KUBERNETES], ids=["local", "kubernetes"])
def test_whoever_fills_has_all_that_the_pipeline_has_when_it_runs(values: Mapping[str, Any]):
    full = {
        "existingSecret": "settings",
        "checkpoint": {"url": "s3a://bucket/folder", "existingSecret": "keys"},
        "kafka": {"sasl": {"mechanism": "PLAIN", "username": "u", "existingSecret": "s"}},
        "extraEnv": [{"name": "A", "value": "b"}],
    }
    pod = driver(render(merged(merged(values, full), backfill("earliest"))))
    (found,) = pod["spec"]["initContainers"]
    own = {"name", "args", "ports", "startupProbe", "livenessProbe", "readinessProbe"}
    assert {k: v for k, v in found.items() if k not in own} == {k: v for k, v in container(pod).items() if k not in own}
    assert set(found) & own == {"name", "args"}, "nobody asks whether it is alive: it may take as long as it takes"


def test_nothing_is_filled_unless_it_is_said_nor_in_a_diagnostic_pod():
    assert "initContainers" not in driver(render(LOCAL))["spec"]
    changes = merged(backfill("earliest"), {"diagnosticMode": {"enabled": True}})
    assert "initContainers" not in driver(render(merged(LOCAL, changes)))["spec"]


def test_what_others_have_run_first_runs_before_what_fills():
    changes = merged(backfill("earliest"), {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]})
    found = driver(render(merged(LOCAL, changes)))["spec"]["initContainers"]
    assert [each["name"] for each in found] == ["proxy", "upgrade"]


def test_the_notes_say_what_happens_to_a_changed_query():
    assert "set\nupgrade.from to backfill them" in files(LOCAL)["NOTES.txt"]
    notes = files(merged(LOCAL, backfill("earliest")))["NOTES.txt"]
    assert "kubectl logs --namespace streams tailrace-0 --container upgrade --follow" in notes


def test_the_volume_stays_when_the_release_goes_unless_configured_otherwise():
    claim = find(render(LOCAL), "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    gone = find(render(merged(LOCAL, {"persistence": {"retain": False}})), "PersistentVolumeClaim")
    assert "annotations" not in gone["metadata"]


def test_a_checkpoint_in_an_object_store_needs_no_volume():
    changes = {"checkpoint": {"url": "s3a://bucket/folder", "existingSecret": "keys"}}
    objects = render(merged(LOCAL, changes))
    assert "PersistentVolumeClaim" not in kinds(objects)
    assert environment(driver(objects))["TAILRACE_CHECKPOINT"] == "s3a://bucket/folder"
    assert container(driver(objects))["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert "/var/lib/tailrace/checkpoint" not in mounts(driver(objects))


def test_what_is_written_goes_where_it_may_be_lost():
    changes = {"scratch": {"sizeLimit": "5Gi"}}
    assert mounts(driver(render(merged(LOCAL, changes))))["/tmp"]["emptyDir"] == {"sizeLimit": "5Gi"}
    assert container(driver(render(LOCAL)))["workingDir"] == "/tmp"


def test_the_driver_is_found_before_it_is_ready():
    service = find(render(KUBERNETES), "Service", "tailrace-headless")["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert {port["name"]: port["port"] for port in service["ports"]} == {"http": 8080, "driver": 7078, "blocks": 7079}


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, "tailrace:0.1.0"),
        ({"registry": "r.example.com", "repository": "a/b", "tag": "7"}, "r.example.com/a/b:7"),
        ({"tag": "7", "digest": "sha256:" + "0" * 64}, "tailrace@sha256:" + "0" * 64),
    ],
    ids=["default", "registry", "digest"],
)
def test_the_image_is_named_by_registry_tag_or_digest(image: Mapping[str, str], expected: str):
    objects = render(merged(LOCAL, {"image": image}))
    assert container(driver(objects))["image"] == expected
    assert container(find(objects, "Pod"))["image"] == expected


@pytest.mark.parametrize(
    ("release", "changes", "expected"),
    [
        ("spending", {}, "spending-tailrace"),
        ("tailrace-spending", {}, "tailrace-spending"),
        ("spending", {"nameOverride": "tr"}, "spending-tr"),
        ("spending", {"fullnameOverride": "it"}, "it"),
        ("s" * 53, {}, "s" * 52),
    ],
    ids=["release", "contains", "name", "fullname", "long"],
)
def test_objects_are_named_after_the_release(release: str, changes: Mapping[str, Any], expected: str):
    assert find(render(merged(LOCAL, changes), name=release), "StatefulSet")["metadata"]["name"] == expected


def test_the_notes_say_what_to_do_next_and_what_is_risky():
    notes = files(LOCAL)["NOTES.txt"]
    assert "kubectl rollout status --namespace streams statefulset/tailrace" in notes
    assert "kubectl delete --namespace streams persistentvolumeclaim/tailrace-checkpoint" in notes
    assert "WARNING" not in notes
    risky = merged(
        LOCAL,
        {
            "persistence": {"enabled": False},
            "kafka": {"sasl": {"mechanism": "PLAIN", "username": "u", "existingSecret": "s"}},
            "prometheusRule": {"enabled": True},
        },
    )
    warnings = [line for line in files(risky)["NOTES.txt"].splitlines() if line.startswith("WARNING")]
    assert [warning.split(" ")[1:3] for warning in warnings] == [
        ["The", "checkpoint"],
        ["The", "password"],
        ["There", "are"],
    ]


def test_the_notes_name_cores_without_work():
    few = merged(KUBERNETES, {"spark": {"partitions": 4, "executor": {"instances": 3, "cores": 2}}})
    assert "6 cores share 4 tasks" in files(few)["NOTES.txt"]
    assert "WARNING" not in files(KUBERNETES)["NOTES.txt"]
    many = merged(KUBERNETES, {"spark": {"executor": {"instances": 12}}})
    assert "WARNING" not in files(many)["NOTES.txt"], "nobody has said how many partitions: there are enough"
