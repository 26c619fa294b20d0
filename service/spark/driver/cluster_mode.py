"""Spark's settings if the driver runs no tasks itself: its executors, and Kubernetes, which creates them.

The driver is Spark's client: it runs in a pod that somebody else made, and asks the API server for executor pods, which
it owns. Executors run the same image, so nothing is sent to them that the image holds. What Spark would make in the
namespace besides pods (a ConfigMap, claims, a Service) is switched off: the driver needs no right to it.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.deployment.capacity import local_cluster
from service.settings import Kubernetes, Spark
from service.spark.driver.allocation import ENVIRONMENT
from service.spark.driver.class_path import archive_options, executor_class_path

DRIVER_PORT = 7078
"""Where executors reach the driver."""

BLOCKS_PORT = 7079
"""Where driver and executors reach each other's blocks."""

CONTAINER = "spark-kubernetes-executor"
"""The container of the pod template that becomes an executor."""

_TEMPLATE = "spark.kubernetes.executor.podTemplate"
_PVC = "PersistentVolumeClaim"

WITHOUT: Mapping[str, str] = {
    "spark.kubernetes.executor.disableConfigMap": "true",
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    f"spark.kubernetes.driver.own{_PVC}": "false",
    f"spark.kubernetes.driver.reuse{_PVC}": "false",
}
"""The kinds of objects besides pods that Spark would create, list or delete."""

NOBODY_COMES: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
}
"""A driver without executors listens, too: on this machine's loopback only, and with a secret that Spark makes for
itself, since other users of the machine could connect otherwise."""

ENCRYPTED: Mapping[str, str] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    # The cipher that also notices a change; Spark's default does not.
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # Without it a peer may still request the older protocol, which does not encrypt.
    "spark.network.crypto.saslFallback": "false",
}
"""The settings of processes that share a secret."""


def is_local(master: str) -> bool:
    """Return whether the driver's own process runs the tasks."""
    return master == "local" or master.startswith("local[")


def is_kubernetes(master: str) -> bool:
    """Return whether Kubernetes makes the executors."""
    return master.startswith("k8s://")


def suggested(spark: Spark) -> dict[str, str]:
    """Return the settings that the user's own Spark settings may change."""
    if is_local(spark.master):
        return {"spark.driver.memory": spark.driver_memory, "spark.locality.wait": "0"}
    executor = spark.executor
    settings = {
        "spark.driver.memory": spark.driver_memory,
        "spark.executor.instances": str(executor.instances),
        "spark.executor.cores": str(executor.cores),
        "spark.executor.memory": executor.memory,
        "spark.executor.memoryOverhead": executor.memory_overhead,
        # A task had better run elsewhere at once than in the right place later.
        "spark.locality.wait": "0",
        # A shard may run anywhere: not only where most of its rows come from.
        "spark.shuffle.reduceLocality.enabled": "false",
        # One attempt for each Python worker that was killed while idle; for other errors see `attempts`.
        "spark.task.maxFailures": "16",
        # An executor that must leave lets its tasks finish first.
        "spark.decommission.enabled": "true",
        # Spark ends itself when too many executors have failed. It counts from the beginning of time, unless set not
        # to: a service that runs for months would meet that number one day.
        "spark.executor.failuresValidityInterval": "1h",
        "spark.executor.maxNumFailures": str(max(10, 4 * executor.instances)),
    }
    if spark.secret_file:
        # What Spark puts on disk between two stages: rows, and what tasks are given, passwords among it.
        settings["spark.io.encryption.enabled"] = "true"
    if is_kubernetes(spark.master):
        settings["spark.kubernetes.executor.terminationGracePeriodSeconds"] = "70s"
    return settings


def required(
    spark: Spark,
    given: Mapping[str, str],
    *,
    jars: Sequence[Path],
    clients: Sequence[Path],
    python_path: Sequence[str],
    java_options: str,
) -> dict[str, str]:
    """Return the settings that are required. `given` are the user's own Spark settings, some of which are added to, not
    replaced. Executors need our archives, `jars`, and those of an object store, `clients`."""
    if is_local(spark.master):
        return dict(NOBODY_COMES)
    same_files = is_kubernetes(spark.master) or local_cluster(spark.master) is not None
    if same_files:
        java_options = _joined(" ", java_options, shlex.join(archive_options(jars)))
    settings = {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(python_path),
        **{f"spark.executorEnv.{name}": value for name, value in ENVIRONMENT.items()},
        "spark.executor.extraJavaOptions": _joined(" ", java_options, given.get("spark.executor.extraJavaOptions")),
    }
    if spark.secret_file:
        settings |= {**ENCRYPTED, **_secret(spark)}
    else:  # Spark starts them on this machine: the secret lives as long as they do
        settings |= {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(32)}
    if not same_files:
        return settings | _sent([*jars, *clients], given)
    # With `spark.jars` each executor would fetch from the driver what it has.
    settings["spark.executor.extraClassPath"] = executor_class_path(jars, clients, given)
    return settings | (_kubernetes(spark.kubernetes) if is_kubernetes(spark.master) else {})


def _secret(spark: Spark) -> dict[str, str]:
    """On Kubernetes each pod reads the file itself. Elsewhere Spark accepts no file, and passes the secret on."""
    if is_kubernetes(spark.master):
        return {"spark.authenticate.secret.file": spark.secret_file}
    return {"spark.authenticate.secret": Path(spark.secret_file).read_text().strip()}


def _kubernetes(kubernetes: Kubernetes) -> dict[str, str]:
    address = kubernetes.driver_address
    settings = {
        "spark.submit.deployMode": "client",
        "spark.kubernetes.namespace": kubernetes.namespace,
        "spark.kubernetes.driver.pod.name": kubernetes.driver_pod,
        # The pod's address rather than a name: a name is known to everyone only some seconds after the pod has started.
        "spark.driver.host": f"[{address}]" if ":" in address else address,
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCKS_PORT),
        "spark.blockManager.port": str(BLOCKS_PORT),
        # A port in use is an error: the next one may be blocked for others.
        "spark.port.maxRetries": "0",
        "spark.kubernetes.container.image": kubernetes.image,
        "spark.kubernetes.container.image.pullPolicy": kubernetes.image_pull_policy,
        "spark.kubernetes.authenticate.executor.serviceAccountName": kubernetes.service_account,
        **WITHOUT,
    }
    if kubernetes.pod_template:
        settings |= {_TEMPLATE + "File": kubernetes.pod_template, _TEMPLATE + "ContainerName": CONTAINER}
    return settings


def _sent(jars: Sequence[Path], given: Mapping[str, str]) -> dict[str, str]:
    """The archives as files of this machine, which executors fetch from the driver."""
    return {"spark.jars": _joined(",", *map(str, jars), given.get("spark.jars"))}


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))
