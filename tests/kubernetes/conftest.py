"""One cluster for all tests of this folder, a broker that its pods reach, and releases of the chart in namespaces.
`make k8s-test` runs them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

import pytest

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.brokers import MakeTopic
from tests.kubernetes.cluster import audit, network
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.tools import CACHE
from tests.kubernetes.orders import Orders
from tests.kubernetes.release import SMALL, MakeRelease, Release, Values, merged


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; without a word from the caller they do not run."""
    folder = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker("kubernetes")
            item.add_marker(pytest.mark.timeout(900))  # the first one waits for the cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of two nodes. Its logs stay in .cache/kubernetes/cluster until the next one."""
    if not network.private():
        raise pytest.UsageError("these tests change the network of the machine they run on: run `make k8s-test`")
    folder = CACHE / "cluster"  # beside the images, with which it shares files
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made = Cluster(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def kafka(cluster: Cluster) -> Iterator[EmbeddedKafka]:
    """A broker beside the cluster."""
    with EmbeddedKafka(host=network.MACHINE) as broker:
        yield broker


@pytest.fixture
def orders(kafka: EmbeddedKafka, make_topic: MakeTopic) -> Orders:
    """A stream of orders of the test's own."""
    return Orders(kafka, make_topic)


@pytest.fixture
def release(cluster: Cluster, kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[MakeRelease]:
    """Makes releases, each in a namespace that lets in restricted pods only: `release({"mode": "kubernetes", ...})`.

    At the end none of them may have asked the API server for what it has no right to.
    """
    made: list[Release] = []

    def make(values: Values = MappingProxyType({})) -> Release:
        namespace = f"test-{uuid4().hex[:8]}"
        folder = tmp_path / namespace
        folder.mkdir()
        address = {"kafka": {"bootstrapServers": kafka.bootstrap}}
        made.append(Release(cluster.namespace(namespace), folder, merged(merged(SMALL, address), values)))
        cluster.volume(namespace, made[-1].claim)
        return made[-1]

    yield make
    for each in made:
        each.remove()
        asked = audit.requests(cluster.audit_log, each.namespace)
        refused = {f"{request.verb} {request.resource}" for request in asked if not request.allowed}
        assert refused - each.perhaps_refused == each.refused


@pytest.fixture
def answered(release: MakeRelease, orders: Orders) -> MakeRelease:
    """Makes releases that compute `orders` and have answered once."""

    def make(values: Values = MappingProxyType({})) -> Release:
        made = release({**values, "pipeline": {"sql": orders.pipeline}})
        made.install()
        orders.feed(1000)
        orders.until_answered(made.report)
        return made

    return make
