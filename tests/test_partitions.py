"""How many tasks a level has: as many as may run at a time, or fewer where that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from service.deployment.capacity import tasks_of
from service.host import machine
from service.settings import Executor, Kubernetes, Spark

TWO = Executor(instances=2, cores=2)
TWELVE = Executor(instances=4, cores=3)
KUBERNETES = "k8s://https://kubernetes.default.svc:443"


@pytest.mark.parametrize(
    ("master", "executor", "expected"),
    [
        ("local", TWELVE, 1),
        ("local[3]", TWELVE, 3),
        ("local[16]", TWELVE, 16),
        ("local[3,4]", TWELVE, 3),
        ("local[ 3 , 4 ]", TWELVE, 3),
        ("local[*]", TWELVE, 6),
        ("local[*,4]", TWELVE, 6),
        ("local-cluster[2,1,2048]", TWELVE, 2),
        ("local-cluster[2,3,2048]", TWELVE, 6),
        ("local-cluster[ 3, 4, 2048 ]", TWO, 12),
        (KUBERNETES, TWO, 4),
        (KUBERNETES, TWELVE, 12),
        ("spark://host:7077", TWO, 4),
        ("spark://host:7077", TWELVE, 12),
    ],
)
def test_there_are_as_many_as_cores(master: str, executor: Executor, expected: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "cores", lambda: 6)
    assert tasks_of(spark(master=master, executor=executor)) == expected


@pytest.mark.parametrize(
    ("master", "wanted", "expected"),
    [
        ("local[2,16]", 1, 1),
        ("local[2,16]", 2, 2),
        ("local[2,16]", 128, 2),
        ("local-cluster[2,1,1024]", 4, 2),
        (KUBERNETES, 3, 3),
        (KUBERNETES, 32, 4),
        ("spark://host:7077", 32, 32),
    ],
)
def test_more_than_cores_are_none(master: str, wanted: int, expected: int):
    assert tasks_of(spark(master=master, executor=TWO, partitions=wanted)) == expected


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({"spark.executor.instances": "5"}, 10),
        ({"spark.executor.cores": "8"}, 16),
        ({"spark.dynamicAllocation.enabled": "true"}, 32),
    ],
)
def test_executors_are_those_that_spark_is_given(conf: dict[str, str], expected: int):
    assert tasks_of(spark(master=KUBERNETES, executor=TWO, partitions=32, conf=conf)) == expected


def spark(**settings: Any) -> Spark:
    return Spark(kubernetes=Kubernetes(driver_pod="p", driver_address="a", image="i"), secret_file="s", **settings)
