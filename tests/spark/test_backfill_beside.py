"""New operators are backfilled beside the running query, which still answers; kills change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark import test_backfill
from tests.spark.service_process import ServiceProcess
from tests.spark.test_backfill import Pipeline, Upgrades

pytestmark = pytest.mark.timeout(900)  # each starts Spark four times
upgrades = test_backfill.upgrades


def test_what_is_new_is_backfilled_beside_the_running_query_and_killed_on_the_way(
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
    upgrades: Upgrades,
    tmp_path: Path,
) -> None:
    pipeline = Pipeline(kafka, make_topic, tmp_path)
    commits = tmp_path / "checkpoint/totals/tailrace/backfill/commits"
    job = service(pipeline.before, kafka.bootstrap, BATCH__ROWS="1000")
    pipeline.feed(1500)
    job.start()
    job.until("all totals are there", pipeline.answered)
    arguments = ("--from", "earliest", str(pipeline.file))
    upgrades.call("upgrade", *arguments)
    upgrades.until("two batches of the backfill are done", (commits / "1").exists)
    upgrades.kill_driver()
    pipeline.feed(300)
    job.until("the first query goes on meanwhile", pipeline.answered)
    upgrades.call("upgrade", *arguments)
    upgrades.until("the backfill waits for the first query to be stopped", lambda: '"backfilled"' in upgrades.log)
    pipeline.feed(300)
    job.until("the first query goes on meanwhile", pipeline.answered)
    job.terminate()
    assert job.wait() == 0
    assert upgrades.wait() == 0, upgrades.log[-4000:]
    assert "the changed query has taken over" in upgrades.log
    pipeline.check_new()
