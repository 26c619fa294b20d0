"""The memory of a worker stays as it is over many batches of wide rows.

TAILRACE_TEST_BATCHES sets their number (200; `make chaos` does 10,000). Each goes through what a Spark task runs:
records are decoded, exchanged, taken into the state of a shard, which is sealed into files, swept, and encoded.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.blocks import BlockWriter
from service.checkpoint.sweep import sweep
from service.checkpoint.version import LevelState, ShardState, Version
from service.formats.registry import decoder, encoder
from service.kafka.writer.writer_settings import WriterSettings
from service.plan.lowering.lower import compile_job
from service.runtime.envelope import EGRESS, Envelope, Kind
from service.runtime.ingest import Ingest
from service.runtime.layout import Layout
from service.runtime.shard import Shard
from service.runtime.task_metrics import TaskMetrics
from service.runtime.watermarks import Tick, channel_name
from service.spark.query.egress import Egress
from service.spark.query.job_spec import JobSpec, WorkerJob, worker_sql
from service.spark.query.shard_cache import ShardCache
from service.spark.query.shard_state import KeptShard
from service.sql.pipeline import read

BATCHES = int(os.environ.get("TAILRACE_TEST_BATCHES", "200"))
WARM = BATCHES // 4
"""Batches after which what is taken once has been taken: caches, statements, the arenas of allocators."""

ALLOWED = 48 << 20
"""What allocators may take more, by their own moods; a leak of one batch's rows in twenty would be 10,000 * 50 KB."""

WIDE, KEYS, ROWS = 40, 200, 50
COLUMNS = ", ".join(f"c{i} STRING" for i in range(WIDE))
PIPELINE = f"""
    CREATE TABLE t (k INT, n INT, {COLUMNS}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
    CREATE TABLE latest (k INT, n INT, {COLUMNS}, PRIMARY KEY (k) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'latest', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO latest SELECT k, n, {", ".join(f"c{i}" for i in range(WIDE))} FROM
      (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC) AS r FROM t) WHERE r = 1;
"""

NOWHERE = WriterSettings(query="job", checkpoint_id="c", kafka={}, marker_topic="m", socket_folder="", parent_pid=0)


class Worker:
    """A worker that serves the one task of each level of a job, batch by batch."""

    def __init__(self, folder: Path) -> None:
        program = compile_job(read(PIPELINE).jobs[0])
        self._program = program
        self._source = program.sources[0]
        self._job = WorkerJob(
            JobSpec(
                program=program,
                decoders={s.id: decoder(s.table, s.columns) for s in program.sources},
                encoders={o.id: encoder(o.table, o.columns, "job", o.key, 1) for o in program.outputs},
                layout=Layout(1),
                readers=1,
                block_rows=10_000,
                state=CheckpointAddress(str(folder / "checkpoint")),
                limits={},
                scratch=str(folder),
                run="run",
                writers=(NOWHERE,),
                writer_of={o.id: 0 for o in program.outputs},
                side_writer=None,
                side_bytes=1_000_000,
                dead_letter_topic="",
                late_topic="",
                samples=0,
                one_host=True,
            )
        )
        self._files = self._job.spec.state.open()
        self._sql = worker_sql(str(folder))
        self._cache = ShardCache()

    def batch(self, number: int) -> int:
        """Do a batch; how many changes came out."""
        job, source = self._job, self._source
        decoding = job.spec.decoders[source.id]
        ingest = Ingest(job.topology, source, decoding, job.layout, self._sql, {}, job.spec.block_rows)
        waiting = list(ingest.run([_records(number)], number))
        tick = Tick({source.id: (channel_name(source.id, "t", 0),)}, ()).to_bytes()
        states: list[ShardState] = []
        self._cache.begin(number)
        for level in range(1, self._program.levels + 1):
            here = [e for e in waiting if e.level == level]
            here.append(Envelope(0, level, Kind.TICK, 0, "tick", 0, number, 0, False, tick))
            before = Version.before(self._files, number).levels.get(level, LevelState(None, ()))
            writer = BlockWriter(self._files, number, level, 0)
            kept = KeptShard(job, level, 0, before, writer, self._cache)
            shard = Shard(job.topology, level, 0, job.layout, before.clocks)
            waiting = [e for e in waiting if e.level != level] + list(shard.advance(here, kept.take))
            states.append(ShardState(level, 0, shard.save(), kept.close()))
        Version.of(states, self._program.levels, 1).write(self._files, number)
        if number % 20 == 0:
            sweep(self._files, number)
        egress = Egress(job, self._sql, TaskMetrics())
        written = [record for e in waiting if e.level == EGRESS for record in egress.take(e)]
        return sum(each.records.num_rows for each in [*written, *egress.finish()])


def _records(batch: int) -> pa.Table:
    rows = [
        {"k": (batch * ROWS + i) * 7919 % KEYS, "n": batch, **{f"c{c}": f"{batch}-{i}-{c}" * 4 for c in range(WIDE)}}
        for i in range(ROWS)
    ]
    return pa.table(
        {
            "value": pa.array([json.dumps(row).encode() for row in rows], pa.binary()),
            "topic": pa.array(["t"] * ROWS, pa.string()),
            "partition": pa.array([0] * ROWS, pa.int32()),
            "offset": pa.array(range(batch * ROWS, (batch + 1) * ROWS), pa.int64()),
        }
    )


def _held() -> int:
    """Bytes of memory of this process that are no file."""
    states = Path("/proc/self/status").read_text()
    return sum(int(size) << 10 for size in re.findall(r"(?:RssAnon|RssShmem):\s+(\d+)", states))


@pytest.mark.timeout(60 + BATCHES)
def test_a_worker_holds_no_more_after_many_batches_than_after_a_few(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    for number in range(WARM):
        assert worker.batch(number) == ROWS
    warm = _held()
    print(f"{warm >> 20} MiB after {WARM} batches")
    for number in range(WARM, BATCHES):
        assert worker.batch(number) == ROWS
        if (number + 1) % max(1, BATCHES // 10) == 0:
            print(f"{_held() >> 20} MiB after {number + 1}")
    held = _held()
    assert held - warm < ALLOWED
