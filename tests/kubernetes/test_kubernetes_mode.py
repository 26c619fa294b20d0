"""`mode: kubernetes`: a driver and executor pods, and whatever happens to them, while orders go on coming."""

from __future__ import annotations

import pytest

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.orders import Orders
from tests.kubernetes.release import DRIVER, EXECUTORS, MakeRelease, Release
from tests.kubernetes.waiting import until

PARTITIONS = 4


@pytest.fixture
def running(answered: MakeRelease) -> Release:
    """A release with two executors that has answered once."""
    return answered({**EXECUTORS, "spark": {"partitions": PARTITIONS, "executor": {"instances": 2}}})


def names(running: Release) -> set[str]:
    """The executors that run."""
    return {str(pod["metadata"]["name"]) for pod in running.executors()}


WORKERS = "service.spark.driver.worker_daemon"
"""What forks the Python workers of an executor; its first task of ours starts it."""


def works(running: Release, executor: str) -> bool:
    """Whether an executor has been given tasks: state is files of the checkpoint, so that any of them may have any."""
    processes = running.kubectl("exec", executor, "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    return WORKERS in processes


def until_all_work(running: Release, executors: int) -> None:
    """Wait until that many executors run, each with tasks."""

    def all_work() -> bool:
        present = names(running)
        return len(present) == executors and all(works(running, each) for each in present)

    until(f"{executors} executors share the tasks", all_work, explain=running.report, every=2)


def test_two_executors_share_the_tasks(running: Release):
    until_all_work(running, 2)


def test_a_deleted_executor_is_replaced_and_nothing_is_lost(running: Release, orders: Orders):
    before = names(running)
    lost = min(before)
    orders.feed(1000)
    running.kubectl("delete", "pod", lost, "--wait=false")
    orders.feed(1000)
    orders.until_answered(running.report)
    until("there are two executors again", lambda: len(names(running)) == 2, explain=running.report)
    assert lost not in names(running)
    until_all_work(running, 2)


@pytest.mark.timeout(900)
def test_what_a_changed_query_has_new_is_filled_by_executors_of_its_own(running: Release, orders: Orders):
    before = running.pod_id()
    executors = names(running)
    running.upgrade({"pipeline": {"sql": orders.larger_pipeline}, "upgrade": {"from": "earliest"}})
    orders.feed(1000)
    running.until_replaced(before, 480)
    assert "the changed query has taken over" in running.log()
    orders.until_answered(running.report)
    orders.until_backfilled(running.report)
    until("there are others", lambda: len(names(running)) == 2 and not executors & names(running), 240, running.report)


def test_a_deleted_driver_comes_back_with_new_executors_and_nothing_is_lost(running: Release, orders: Orders):
    before = names(running)
    orders.feed(1000)
    running.kubectl("delete", "pod", DRIVER, "--wait=false")
    orders.feed(1000)
    orders.until_answered(running.report)
    until("there are two others", lambda: len(names(running)) == 2 and not before & names(running), 240, running.report)


def test_a_drained_node_is_left_and_nothing_is_lost(cluster: Cluster, running: Release, orders: Orders):
    driver = running.driver()
    assert driver is not None
    node = str(driver["spec"]["nodeName"])
    orders.feed(1000)
    try:
        running.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=120s")
        orders.feed(1000)
        orders.until_answered(running.report)
        running.until_ready()
        others = {each.name for each in cluster.nodes} - {node}

        def nodes() -> set[str | None]:
            return {pod["spec"].get("nodeName") for pod in running.kubectl.list("pods")}

        until("every pod is on another node", lambda: nodes() == others, explain=running.report)
    finally:
        running.kubectl("uncordon", node)


def test_executors_are_scaled_from_one_to_three(running: Release, orders: Orders):
    for instances in (1, 3):
        running.upgrade({"spark": {"executor": {"instances": instances}}})
        until(f"{instances} executors run", lambda: len(names(running)) == instances, explain=running.report)  # noqa: B023
        orders.feed(1000)
        orders.until_answered(running.report)
        until_all_work(running, instances)


def test_an_uninstall_takes_the_executors_with_it(running: Release):
    """Helm takes the Role away while the driver ends, so that its last wish, to delete its executors, may be refused.
    They go all the same: the driver's pod owns them."""
    running.uninstall()
    running.until_only_the_volume_is_left()
    running.perhaps_refused = {"deletecollection pods"}
