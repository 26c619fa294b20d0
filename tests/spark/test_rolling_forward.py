"""An older copy of a checkpoint goes on: the batches that it lacks are done again as they were cut."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import duckdb

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.local_broker.broker import EmbeddedKafka
from tests.spark.orders import answers, expected, orders, pipeline
from tests.spark.service_process import ROOT, ServiceProcess
from tests.spark.topics import feed

TOPICS = ("orders", "totals", "windows", "spread")
COUNT, PART = 4_000, 500


def test_an_older_copy_answers_as_if_there_were_no_copy(
    own_kafka: Callable[..., EmbeddedKafka], service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    broker = own_kafka()
    Cluster({"bootstrap.servers": broker.bootstrap}).create(
        [TopicSpec(name=name, partitions=2, replication=1) for name in TOPICS]
    )
    ends = {0: COUNT // 2, 1: COUNT // 2}
    job = service(pipeline(*TOPICS, ends=ends), broker.bootstrap, BATCH__ROWS="200")
    checkpoint, older = tmp_path / "checkpoint" / "orders", tmp_path / "older"
    rows = orders(COUNT)

    def done() -> int:
        logged = checkpoint / "commits"
        return max((int(each.name) for each in logged.iterdir() if each.name.isdigit()), default=-1)

    def go_on(batches: int) -> None:
        """Feed a part, and wait for that many batches."""
        last = done()
        feed(broker.bootstrap, "orders", islice(rows, PART))
        job.until("batches are done", lambda: done() >= last + batches)

    feed(broker.bootstrap, "orders", islice(rows, PART))
    job.start()
    job.until("the first batches are done", lambda: (checkpoint / "commits" / "2").exists())
    # Saved while the job works on it.
    save = ["-m", "service", "checkpoint", "save", str(checkpoint), str(older)]
    printed = subprocess.run([sys.executable, *save], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    copied = int(printed.split()[2])
    # It is stopped in the midst of work: what is planned is done, and nothing else is planned.
    feed(broker.bootstrap, "orders", islice(rows, PART))
    job.terminate()
    assert job.wait() == 0
    assert copied <= done() == max(int(each.name) for each in (checkpoint / "offsets").iterdir() if each.name.isdigit())

    # What comes then is cut by other limits, runs in another number of tasks, and is cut short in the end.
    job.start(SPARK__MASTER="local[3,16]", BATCH__ROWS="130")
    go_on(3)
    go_on(2)
    feed(broker.bootstrap, "orders", islice(rows, PART))
    job.kill_driver()
    newest = done()
    shutil.rmtree(checkpoint)
    older.rename(checkpoint)

    feed(broker.bootstrap, "orders", rows)
    job.start()
    assert job.wait(300) == 0
    (event,) = [e for e in job.events() if e["event"] == "the checkpoint is an older copy and rolls forward"]
    assert event["first"] == copied + 1
    assert event["last"] in (newest, newest + 1)
    assert answers(broker.bootstrap, *TOPICS[1:]) == expected(COUNT)

    # What is kept is what is written: the totals by user.
    out = tmp_path / "groups.parquet"
    show = ["-m", "service", "state", str(checkpoint), "group_by_1", "--out", str(out)]
    subprocess.run([sys.executable, *show], cwd=ROOT, check=True)
    kept = duckdb.connect().execute(f"SELECT COUNT(*), COUNT(DISTINCT user) FROM '{out}'").fetchone()
    assert kept == (50, 50)
