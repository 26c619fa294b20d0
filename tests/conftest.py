"""What tests of every kind share: real brokers, and the processes in which they run."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import settings

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.brokers import Broker, KafkaInContainer, MakeTopic
from tests.order import starting_order
from tests.shared_broker import BrokerOnRequest, shared_broker
from tests.spark.service_process import QUICK, ServiceProcess
from tests.spark.shared_jvm.jvm import SharedJvms

# The same examples in every run; to look for new ones: make test-unit ARGS="--hypothesis-profile=search".
settings.register_profile("same", max_examples=6, derandomize=True, database=None)
settings.register_profile("search", max_examples=200)
settings.load_profile("same")

STARTED_FOR_TESTS = {"kafka", "own_kafka", "make_topic", "service", "jvms", "spark", "browser"}
"""Fixtures that start a broker, a JVM or a browser, or run the service; a test that asks for one is marked `e2e`."""

BROKERS: dict[str, Callable[[], AbstractContextManager[Broker]]] = {
    # Of all tests. The JVM's second compiler would take half of its processor time.
    "local": partial(EmbeddedKafka, heap="512m"),
    "testcontainers": KafkaInContainer,
}


WAITING_WORKERS = 1
"""Processes beyond the number of cores that run tests: e2e tests wait half of their time. On two cores all tests take
as long with one as with two (859 s), 1,517 CPU seconds in place of 1,676, and less memory."""


ALLOCATIONS = 20_000
"""Objects made between two collections of cyclic garbage. With Python's 700, collections take an eighth of the time of
unit tests, since there are thousands of collected tests to look at."""


def pytest_collection_finish() -> None:
    """Let the collected tests be, and collect garbage less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes run test files side by side under `--numprocesses auto`, as `make test` asks for."""
    return len(os.sched_getaffinity(0)) + WAITING_WORKERS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a broker, a JVM or a browser, and put the files in order."""
    for item in items:
        if STARTED_FOR_TESTS & set(getattr(item, "fixturenames", ())):
            item.add_marker("e2e")
    e2e = {_file(item) for item in items if item.get_closest_marker("e2e") is not None}
    order = starting_order((file for item in items if (file := _file(item)) not in e2e), sorted(e2e))
    place = {file: number for number, file in enumerate(order)}
    items.sort(key=lambda item: place[_file(item)])


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _chosen_broker() -> AbstractContextManager[Broker]:
    chosen = os.environ.get("TAILRACE_TEST_KAFKA", "local")
    if chosen not in BROKERS:
        raise pytest.UsageError(f"TAILRACE_TEST_KAFKA={chosen}; choose one of {', '.join(BROKERS)}")
    return BROKERS[chosen]()


_ON_REQUEST = pytest.StashKey[BrokerOnRequest]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process that will run tests where the broker is that all of them use."""
    if _ON_REQUEST not in node.config.stash:
        node.config.stash[_ON_REQUEST] = BrokerOnRequest(_chosen_broker)
    node.workerinput["broker"] = node.config.stash[_ON_REQUEST].path


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the broker of all processes, in the one that has started it."""
    if _ON_REQUEST in config.stash:
        config.stash[_ON_REQUEST].close()


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A real broker shared by all tests: a local process, or whatever TAILRACE_TEST_KAFKA names."""
    given: Mapping[str, Any] = getattr(request.config, "workerinput", {})
    if "broker" in given:
        yield shared_broker(given["broker"])
        return
    with _chosen_broker() as broker:
        yield broker


@pytest.fixture
def own_kafka() -> Iterator[Callable[..., EmbeddedKafka]]:
    """Starts brokers of the test's own, to be killed and restarted: `own_kafka(heap="512m")`.

    They are local processes always: a container would come back on another port.
    """
    with ExitStack() as brokers:
        yield lambda **options: brokers.enter_context(EmbeddedKafka(**options))


@pytest.fixture(scope="session")
def jvms() -> Iterator[SharedJvms]:
    """The JVM in which services run that need none of their own."""
    shared = SharedJvms(QUICK)
    yield shared
    shared.close()


@pytest.fixture
def service(tmp_path: Path, jvms: SharedJvms) -> Iterator[Callable[..., ServiceProcess]]:
    """Makes services: `service(pipeline, bootstrap, BATCH__ROWS="10")`. Their folder is the test's, or `folder`. They
    share a JVM, unless it is their own by `own_jvm`: where a test is about the JVM or the memory of a process."""
    made: list[ServiceProcess] = []

    def make(
        pipeline: str, bootstrap: str, folder: Path = tmp_path, own_jvm: bool = False, **settings: str
    ) -> ServiceProcess:
        folder.mkdir(exist_ok=True)
        made.append(ServiceProcess(pipeline, folder, bootstrap, jvms=None if own_jvm else jvms, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def make_topic(kafka: Broker) -> MakeTopic:
    """Makes a topic on the shared broker, under a name that no other test has, and returns that name."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

    def make(name: str = "topic", *, partitions: int = 2, **config: str) -> str:
        unique = f"{name}-{uuid4().hex[:8]}"
        settings: dict[str, Any] = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(unique, partitions, 1, config=settings)])[unique].result(30)
        return unique

    return make
