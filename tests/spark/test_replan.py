"""A batch that was planned and not done, replanned and skipped by hand, and replanned by the service itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ROOT, ServiceProcess, signal_to
from tests.spark.topics import feed, read, upserted

PIPELINE = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE t (name STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{sink}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(n) FROM t GROUP BY name;
"""
ROWS = 1_000


class Job:
    """The service, and `tailrace checkpoint` with its settings."""

    def __init__(self, running: ServiceProcess, bootstrap: str) -> None:
        self.running = running
        self.checkpoint = running.folder / "checkpoint" / "totals"
        self._environment = {
            **os.environ,
            "TAILRACE_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
            "TAILRACE_CHECKPOINT": str(running.folder / "checkpoint"),
        }

    def kill_in_batch(self, number: int) -> None:
        """Start the service, and kill it as soon as it has planned the batch."""
        self.running.start()
        planned, done = (self.checkpoint / log / str(number) for log in ("offsets", "commits"))
        self.running.until("the batch is planned", planned.exists, look_every=0.01)
        signal_to(self.running.driver, signal.SIGKILL)  # at once: its tasks must not commit before it is killed
        self.running.kill_driver()
        assert not done.exists()

    def does(self, *words: str) -> tuple[int, str]:
        """Exit code and words of `tailrace checkpoint`."""
        call = [sys.executable, "-m", "service", "checkpoint", *words, str(self.running.folder / "pipeline.sql")]
        ended = subprocess.run(call, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def events(self, event: str) -> list[dict[str, object]]:
        return [e for e in self.running.events() if e["event"] == event]


def test_a_batch_is_replanned_skipped_and_cut_by_the_service(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = make_topic("source", partitions=2), make_topic("totals")
    feed(kafka.bootstrap, source, [(i % 2, {"name": f"n{i % 3}", "n": i}) for i in range(ROWS)])
    job = Job(service(PIPELINE.format(source=source, sink=sink), kafka.bootstrap), kafka.bootstrap)
    job.kill_in_batch(0)
    code, printed = job.does("show")
    assert code == 0, printed
    assert f"table t: topic {source}, partition 1, from offset 0 to before 500" in printed
    assert job.does("replan") == (
        0,
        f"totals: batch 0, of {ROWS:,} records of a table, is planned again by the next run, with 500 at most\n",
    )
    assert job.does("replan")[0] == 1, "nothing is planned now"

    job.kill_in_batch(0)
    printed = job.does("show")[1]
    assert "partition 1, from offset 0 to before 250" in printed
    code, printed = job.does("skip", "--why", "a test")
    assert (code, printed.splitlines()[0]) == (0, "totals: 500 records are skipped"), printed

    # Three processes have begun the next batch and reported nothing of how they ended.
    job.kill_in_batch(1)
    _write(job.checkpoint / "tailrace" / "tries.json", {"batch": 1, "processes": 3})
    job.running.start()
    assert job.running.wait() == 0
    assert [(e["batch"], e["rows"]) for e in job.events("batch is replanned")] == [(1, 250)]
    assert [e["records"] for e in job.events("records were skipped by hand")][-1] == 500
    totals = {f"n{k}": sum(i for i in range(500, ROWS) if i % 3 == k) for k in range(3)}
    assert {row["name"]: row["total"] for row in upserted(read(kafka.bootstrap, sink)).values()} == totals
    assert "a test" in job.does("show")[1]


def test_a_checkpoint_that_a_driver_works_on_is_left_alone(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = make_topic("source"), make_topic("totals")
    feed(kafka.bootstrap, source, [(0, {"name": "a", "n": 1})])
    pipeline = PIPELINE.format(source=source, sink=sink).replace(", 'scan.bounded.mode' = 'latest-offset'", "")
    job = Job(service(pipeline, kafka.bootstrap), kafka.bootstrap)
    job.running.start()
    job.running.until("it has started", lambda: bool(job.events("started")))
    for words in (("show",), ("replan",), ("skip", "--why", "a test")):
        code, printed = job.does(*words)
        assert (code, "another driver works on the checkpoint" in printed) == (1, True), printed
    job.running.terminate()
    assert job.running.wait() == 0


def _write(path: Path, value: object) -> None:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.write_text(json.dumps(value))
