"""Executors: the pod that they are made from, the right to make them, and what they share with the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.settings import load
from service.spark.driver.cluster_mode import BLOCKS_PORT, CONTAINER, DRIVER_PORT
from tests.chart.rendering import (
    KUBERNETES,
    container,
    driver,
    environment,
    executor,
    find,
    kinds,
    merged,
    mounts,
    render,
)

TLS: Mapping[str, Any] = {
    "kafka": {"tls": {"enabled": True, "ca": {"existingSecret": "ca"}, "client": {"existingSecret": "client"}}}
}


def both(changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    objects = render(merged(KUBERNETES, changes))
    return [driver(objects), executor(objects)]


def test_the_driver_may_do_what_executors_need_in_its_namespace_and_nothing_else():
    objects = render(KUBERNETES)
    assert find(objects, "Role")["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"],
        }
    ]
    assert not {"ClusterRole", "ClusterRoleBinding"} & kinds(objects)
    (subject,) = find(objects, "RoleBinding")["subjects"]
    assert subject["name"] == driver(objects)["spec"]["serviceAccountName"] == "tailrace"


def test_only_the_driver_is_given_a_token():
    objects = render(KUBERNETES)
    assert driver(objects)["spec"]["automountServiceAccountToken"] is True
    assert executor(objects)["spec"]["automountServiceAccountToken"] is False
    assert find(objects, "Pod")["spec"]["automountServiceAccountToken"] is False
    assert find(objects, "ServiceAccount")["automountServiceAccountToken"] is False


def test_a_right_that_somebody_else_gives_is_not_given_twice():
    objects = render(merged(KUBERNETES, {"rbac": {"create": False}}))
    assert not {"Role", "RoleBinding"} & kinds(objects)


def test_spark_finds_its_container_and_its_folders_in_the_template():
    pod = executor(render(KUBERNETES))
    assert container(pod)["name"] == CONTAINER
    (mount,) = [m for m in container(pod)["volumeMounts"] if m["mountPath"] == "/tmp"]
    assert mount["name"].startswith("spark-local-dir-")
    assert container(pod)["workingDir"] == "/tmp"
    assert "image" not in container(pod)


def test_driver_and_executors_write_to_one_checkpoint():
    claims = [mounts(pod)["/var/lib/tailrace/checkpoint"]["persistentVolumeClaim"]["claimName"] for pod in both({})]
    assert claims == ["tailrace-checkpoint", "tailrace-checkpoint"]


def test_driver_and_executors_share_a_secret_that_stands_in_no_pod():
    made = find(render(KUBERNETES), "Secret")
    assert made["metadata"]["name"] == "tailrace-spark"
    for pod in both({}):
        assert mounts(pod)["/etc/tailrace/spark"]["secret"]["secretName"] == "tailrace-spark"
        assert made["data"]["secret"] not in str(pod)
    own = {"spark": {"authentication": {"existingSecret": "own", "key": "token"}}}
    assert "Secret" not in kinds(render(merged(KUBERNETES, own)))
    for pod in both(own):
        secret = mounts(pod)["/etc/tailrace/spark"]["secret"]
        assert (secret["secretName"], secret["items"]) == ("own", [{"key": "token", "path": "secret"}])


def test_a_new_secret_restarts_the_driver():
    """Without a cluster to look into, each render makes another; executors of another secret could not come."""
    before, after = render(KUBERNETES), render(KUBERNETES)
    assert find(before, "Secret") != find(after, "Secret")
    assert driver(before) != driver(after)


def test_executors_trust_the_same_authorities_and_do_not_get_the_clients_key():
    of_driver, of_executor = (mounts(pod)["/etc/tailrace/kafka"]["projected"]["sources"] for pod in both(TLS))
    assert [source["secret"]["name"] for source in of_driver] == ["ca", "client"]
    assert [source["secret"]["name"] for source in of_executor] == ["ca"]


def test_executors_get_no_settings_and_no_passwords():
    changes = {"kafka": {"sasl": {"mechanism": "PLAIN", "username": "u", "existingSecret": "s"}}, "existingSecret": "t"}
    _, pod = both(changes)
    assert not [name for name in environment(pod) if name.startswith("TAILRACE_")]
    assert "/etc/tailrace/secrets" not in mounts(pod)


def test_the_environment_of_both_is_extended_alike():
    changes = {
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
        "checkpoint": {"url": "s3a://bucket", "existingSecret": "keys"},
    }
    for pod in both(changes):
        assert environment(pod)["A"] == "b"
        assert container(pod)["envFrom"] == [{"secretRef": {"name": "keys"}}, {"configMapRef": {"name": "more"}}]


def test_executors_go_where_the_driver_goes_unless_configured_otherwise():
    shared = {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "priorityClassName": "high"}
    _, pod = both(shared)
    assert {name: pod["spec"][name] for name in shared} == shared
    _, pod = both({**shared, "spark": {"executor": {"nodeSelector": {"c": "d"}, "priorityClassName": "low"}}})
    assert (pod["spec"]["nodeSelector"], pod["spec"]["priorityClassName"]) == ({"c": "d"}, "low")


def test_executors_are_spread_among_their_like():
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    _, pod = both({"spark": {"executor": {"topologySpreadConstraints": [constraint]}}})
    (spread,) = pod["spec"]["topologySpreadConstraints"]
    assert spread == constraint | {
        "labelSelector": {
            "matchLabels": {
                "app.kubernetes.io/name": "tailrace",
                "app.kubernetes.io/instance": "tailrace",
                "app.kubernetes.io/component": "executor",
            }
        }
    }
    assert spread["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_no_selector_of_the_driver_finds_an_executor():
    objects = render(merged(KUBERNETES, {"podDisruptionBudget": {"enabled": True}, "networkPolicy": {"enabled": True}}))
    labels = executor(objects)["metadata"]["labels"].items()
    for kind, name in [("Service", "tailrace"), ("Service", "tailrace-headless"), ("StatefulSet", "tailrace")]:
        spec = find(objects, kind, name)["spec"]
        selector = spec["selector"].get("matchLabels", spec["selector"])
        assert selector.items() <= driver(objects)["metadata"]["labels"].items()
        assert not selector.items() <= labels
    budget = find(objects, "PodDisruptionBudget", "tailrace-executor")["spec"]
    assert budget["selector"]["matchLabels"].items() <= labels
    assert budget["minAvailable"] == 1


def test_the_ports_are_those_that_spark_is_given():
    objects = render(merged(KUBERNETES, {"networkPolicy": {"enabled": True}}))
    assert {p["name"]: p["containerPort"] for p in container(driver(objects))["ports"]} == {
        "http": 8080,
        "driver": DRIVER_PORT,
        "blocks": BLOCKS_PORT,
    }
    (rule,) = find(objects, "NetworkPolicy", "tailrace-executor")["spec"]["ingress"]
    assert rule["ports"] == [{"port": BLOCKS_PORT}]


def test_the_settings_say_what_executors_are():
    changes = {
        "image": {"tag": "7", "pullPolicy": "Always"},
        "spark": {
            "conf": {"spark.network.timeout": "60s", "spark.task.maxFailures": 8},
            "executor": {
                "instances": 3,
                "cores": 4,
                "memory": "2g",
                "memoryOverhead": "5g",
                "cpuRequest": "3500m",
                "cpuLimit": "8",
            },
        },
    }
    found = environment(driver(render(merged(KUBERNETES, changes))))
    spark = load({n: v if isinstance(v, str) else v["fieldRef"]["fieldPath"] for n, v in found.items()}).spark
    assert spark.master == "k8s://https://kubernetes.default.svc:443"
    assert (spark.executor.instances, spark.executor.cores) == (3, 4)
    assert (spark.executor.memory, spark.executor.memory_overhead) == ("2g", "5g")
    assert (spark.kubernetes.image, spark.kubernetes.image_pull_policy) == ("tailrace:7", "Always")
    assert spark.kubernetes.driver_address == "status.podIP"
    assert spark.conf == {
        "spark.kubernetes.executor.request.cores": "3500m",
        "spark.kubernetes.executor.limit.cores": "8",
        "spark.network.timeout": "60s",
        "spark.task.maxFailures": "8",
    }
