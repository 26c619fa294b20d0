"""What tests of every kind share: real brokers, and the order in which tests run."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import settings

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.brokers import Broker, KafkaInContainer, MakeTopic
from tests.order import turns

# The same examples in every run; to look for new ones: make test-unit ARGS="--hypothesis-profile=search".
settings.register_profile("same", max_examples=6, derandomize=True, database=None)
settings.register_profile("search", max_examples=200)
settings.load_profile("same")

STARTED_FOR_TESTS = {"kafka", "own_kafka", "make_topic", "spark", "browser"}
"""Fixtures that start a broker, a JVM or a browser; a test that asks for one is marked `e2e`."""

BROKERS: dict[str, Callable[[], AbstractContextManager[Broker]]] = {
    "local": EmbeddedKafka,
    "testcontainers": KafkaInContainer,
}


WAITING_WORKERS = 2
"""Processes beyond the number of cores that run tests: e2e tests wait half of their time."""

WORKER_MEMORY = 2_500 << 20
"""Bytes that a process takes with the broker and the service that its test starts."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes run test files side by side under `--numprocesses auto`, as `make test` asks for."""
    cores = len(os.sched_getaffinity(0))
    if "not e2e" in config.option.markexpr:
        return cores
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores + WAITING_WORKERS, memory // WORKER_MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without a look for garbage: there is little, and each look goes through all that is collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a broker, a JVM or a browser. A process alone runs it after all that does not; where several run
    files side by side, both kinds take turns."""
    for item in items:
        if STARTED_FOR_TESTS & set(getattr(item, "fixturenames", ())):
            item.add_marker("e2e")
    if not hasattr(config, "workerinput"):
        items.sort(key=_is_e2e)
        return
    kinds = dict.fromkeys(map(_file, items), "unit") | {_file(item): "e2e" for item in items if _is_e2e(item)}
    turn = turns(kinds)
    items.sort(key=lambda item: (turn[_file(item)], _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _is_e2e(item: pytest.Item) -> bool:
    return item.get_closest_marker("e2e") is not None


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """A real broker shared by all tests: a local process, or whatever TAILRACE_TEST_KAFKA names."""
    chosen = os.environ.get("TAILRACE_TEST_KAFKA", "local")
    if chosen not in BROKERS:
        raise pytest.UsageError(f"TAILRACE_TEST_KAFKA={chosen}; choose one of {', '.join(BROKERS)}")
    with BROKERS[chosen]() as broker:
        yield broker


@pytest.fixture
def own_kafka() -> Iterator[Callable[..., EmbeddedKafka]]:
    """Starts brokers of the test's own, to be killed and restarted: `own_kafka(heap="512m")`.

    They are local processes always: a container would come back on another port.
    """
    with ExitStack() as brokers:
        yield lambda **options: brokers.enter_context(EmbeddedKafka(**options))


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
