"""State that the bench has made larger is state of the query: its keys are found, counted and changed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from bench.grown_state import FIRST_KEY, grow
from bench.workloads import GROUP_BY
from operators.names import WEIGHT
from operators.sql import Sql
from service.checkpoint.version import Version
from service.formats.registry import decoder
from service.local.runner import LocalRunner, gathered
from service.plan.lowering.lower import compile_job
from service.runtime.envelope import Envelope
from service.runtime.layout import Layout
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read
from tests.spark.levels_on_files import LevelsOnFiles, computing_with

QUERY = GROUP_BY.sql("broker", "group", "results", ("payments",))
SHARDS = Layout(2)
KEYS = 100_000
"""Several blocks in each shard."""


class Running:
    """The query, as tasks of Spark run it, over a checkpoint in a folder."""

    def __init__(self, folder: Path, sql: Sql) -> None:
        self._folder = folder
        self._program = compile_job(read(QUERY).jobs[0])
        (source,) = self._program.sources
        self._source = source.id
        self._entering = LocalRunner(self._program, {source.id: decoder(source.table, source.columns)}, 2, sql)
        self._batch = 0

    def batch(self, *accounts: int) -> dict[int, int]:
        """Payments of accounts; how many there are now of each."""
        values = [json.dumps({"id": 1, "account": each, "amount": 1.5, "ms": 1}).encode() for each in accounts]
        records = pa.table(
            {
                "value": pa.array(values, pa.binary()),
                "topic": pa.array(["payments"] * len(values)),
                "partition": pa.array([0] * len(values), pa.int32()),
                "offset": pa.array(range(len(values)), pa.int64()),
            }
        )
        tick = Tick({self._source: (channel_name(self._source, "payments", 0),)}, ())
        waiting: list[Envelope] = self._entering.entering({self._source: [records]}, tick, self._batch, SHARDS)
        levels = LevelsOnFiles(Topology(self._program), self._program.levels, str(self._folder))
        states = list(levels.tasks(self._batch, waiting, SHARDS))
        Version.of(states, self._program.levels, SHARDS.shards).write(levels.files, self._batch)
        (self._folder / "commits").mkdir(exist_ok=True)
        (self._folder / "commits" / str(self._batch)).touch()
        self._batch += 1
        answer = gathered(waiting)
        self.kept = self._entering.state_rows(answer)
        (rows,) = answer.outputs.values()
        added = rows.filter(pc.greater(rows.column(WEIGHT), 0))
        return dict(zip(added.column(0).to_pylist(), added.column(1).to_pylist(), strict=True))


def test_keys_that_were_added_are_kept_as_the_one_that_they_are_like(tmp_path: Path) -> None:
    sql = Sql()
    with computing_with(sql):
        running = Running(tmp_path, sql)
        running.batch(*range(50))
        assert running.kept == 50
        assert grow(QUERY, tmp_path, KEYS) > KEYS * 40
        known = [FIRST_KEY, FIRST_KEY + KEYS // 2, FIRST_KEY + KEYS - 1]
        unknown = FIRST_KEY + KEYS
        assert running.batch(7, *known, unknown) == {7: 2, **dict.fromkeys(known, 2), unknown: 1}
        assert running.kept == 50 + KEYS + 1
