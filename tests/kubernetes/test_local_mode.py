"""`mode: local`: the whole service in one pod, from the first install to the last."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.kubernetes.cluster.tools import ROOT
from tests.kubernetes.orders import Orders
from tests.kubernetes.release import DRIVER, NAME, MakeRelease, Release
from tests.kubernetes.waiting import until
from tests.spark.topics import feed, read

EXAMPLE = ROOT / "examples" / "spending_by_city"


def batches(file: str) -> list[list[bytes]]:
    """The records of a file of the example, batch by batch."""
    parts = (EXAMPLE / file).read_text().split("---\n")
    return [[line.encode() for line in part.splitlines() if line and not line.startswith("#")] for part in parts]


def by_city(records: Iterable[bytes | None]) -> dict[str, list[bytes]]:
    """The changes of each city in their order; that of different cities means nothing."""
    found: dict[str, list[bytes]] = {}
    for record in filter(None, records):
        found.setdefault(json.loads(record)["data"]["city"], []).append(record)
    return found


def test_the_example_of_the_readme_writes_exactly_its_changelog(kafka: EmbeddedKafka, release: MakeRelease):
    topics = [NewTopic(name, 1, 1) for name in ("orders", "users", "cities")]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for made in admin.create_topics(topics).values():
        made.result(30)
    sql = (EXAMPLE / "pipeline.sql").read_text()
    running = release({"pipeline": {"sql": sql, "variables": {"KAFKA": kafka.bootstrap}}})
    running.install()
    right: list[bytes] = []
    for users, orders, cities in zip(
        batches("users.records"), batches("orders.records"), batches("cities.records"), strict=True
    ):
        feed(kafka.bootstrap, "users", ((0, each) for each in users))
        feed(kafka.bootstrap, "orders", ((0, each) for each in orders))
        right += cities
        until(f"{len(right)} changes", lambda: len(changes(kafka)) >= len(right), 240, running.report)  # noqa: B023
        assert by_city(changes(kafka)) == by_city(right)
    running.helm("test", NAME)


def changes(kafka: EmbeddedKafka) -> list[bytes | None]:
    """The changes of the cities so far."""
    return [value for _, value in read(kafka.bootstrap, "cities")]


@pytest.fixture
def running(answered: MakeRelease) -> Release:
    """A release that has answered once."""
    return answered()


def test_an_upgrade_with_other_resources_goes_on_from_the_checkpoint(orders: Orders, running: Release):
    before = running.pod_id()
    running.upgrade({"spark": {"driver": {"cores": 1}}, "resources": {"requests": {"cpu": "100m"}}})
    orders.feed(1000)
    running.until_replaced(before)
    orders.until_answered(running.report)


def test_an_incompatible_pipeline_is_refused_and_writes_nothing(orders: Orders, running: Release):
    before = running.pod_id()
    running.upgrade({"pipeline": {"sql": orders.incompatible_pipeline}})
    # The pod before it may answer until it has ended.
    until("another pod starts", lambda: running.pod_id() not in ("", before), explain=running.report)
    written = orders.written()
    orders.feed(1000)
    until(
        "the new pod says why it refuses",
        lambda: "holds the state of another query" in running.log(),
        explain=running.report,
    )
    assert not running.ready()
    assert orders.written() == written
    running.upgrade({"pipeline": {"sql": orders.pipeline}})
    orders.until_answered(running.report)


@pytest.mark.timeout(900)
def test_what_a_changed_query_has_new_is_filled_before_it_runs(orders: Orders, running: Release):
    before = running.pod_id()
    running.upgrade({"pipeline": {"sql": orders.larger_pipeline}, "upgrade": {"from": "earliest"}})
    until("another pod fills", lambda: running.pod_id() not in ("", before), explain=running.report)
    orders.feed(1000)
    running.kubectl("delete", "pod", DRIVER, "--wait=false")
    orders.until_answered(running.report)
    orders.until_backfilled(running.report)
    assert "the changed query has taken over" in running.log() or "belongs to this query" in running.log()
    # The value stays: the next start finds nothing to fill.
    before = running.pod_id()
    running.kubectl("delete", "pod", DRIVER, "--wait=false")
    running.until_replaced(before, 480)
    assert "the checkpoint belongs to this query" in running.log()
    orders.feed(1000)
    orders.until_answered(running.report)
    orders.until_backfilled(running.report)


def test_a_driver_that_is_deleted_comes_back_and_goes_on(orders: Orders, running: Release):
    before = running.pod_id()
    running.kubectl("delete", "pod", DRIVER, "--wait=false")
    orders.feed(1000)
    running.until_replaced(before)
    orders.until_answered(running.report)


def test_an_uninstall_leaves_only_the_volume(orders: Orders, running: Release):
    running.uninstall()
    running.until_only_the_volume_is_left()
    # What was left is enough to go on with.
    orders.feed(1000)
    running.install()
    orders.until_answered(running.report)
