"""Into how many partitions a job is shuffled where nobody says it: as many as tasks may run at a time."""

from __future__ import annotations

import pytest

from service.deployment.planning import default_partitions
from service.host import machine
from service.settings import Executor, Kubernetes, Spark

TWO = Executor(instances=2, cores=2)
TWELVE = Executor(instances=4, cores=3)


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
        ("k8s://https://kubernetes.default.svc:443", TWO, 4),
        ("k8s://https://kubernetes.default.svc:443", TWELVE, 12),
        ("spark://host:7077", TWO, 4),
        ("spark://host:7077", TWELVE, 12),
    ],
)
def test_there_are_as_many_as_cores(master: str, executor: Executor, expected: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "cores", lambda: 6)
    kubernetes = Kubernetes(driver_pod="p", driver_address="a", image="i")
    assert (
        default_partitions(Spark(master=master, executor=executor, kubernetes=kubernetes, secret_file="s")) == expected
    )
