"""Blocks that a task writes before its end: those of attempts that fail, and those that it needs no longer itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.workloads import GROUP_BY
from operators.names import WEIGHT
from operators.sql import Sql
from operators.state import block
from service.checkpoint import blocks
from service.checkpoint.blocks import Manifest
from service.checkpoint.files import FolderFiles
from service.checkpoint.version import Version
from service.formats.registry import decoder
from service.local.runner import LocalRunner, gathered
from service.plan.lowering.lower import compile_job
from service.runtime.envelope import Envelope
from service.runtime.layout import Layout
from service.runtime.shard_operators import ShardOperators
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read
from tests.spark.levels_on_files import LevelsOnFiles, computing_with

QUERY = GROUP_BY.sql("broker", "group", "results", ("payments",))
SHARDS = Layout(2)
KEYS = 40
BATCHES = 9
"""Enough that runs are merged twice, of which one was written in the same batch."""


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block is a large one."""
    monkeypatch.setattr(block, "WRITTEN_EARLY", 0)


class Lost(Exception):
    """What a task fails of."""


class Running:
    """The query over a checkpoint in a folder, whose tasks run in one worker; `failing` ones end when they have
    computed."""

    def __init__(self, folder: Path, sql: Sql) -> None:
        program = compile_job(read(QUERY).jobs[0])
        (source,) = program.sources
        self._source = source.id
        self._levels = program.levels
        self._entering = LocalRunner(program, {source.id: decoder(source.table, source.columns)}, 2, sql)
        self._tasks = LevelsOnFiles(Topology(program), program.levels, str(folder), opened=self._opened)
        self._counts: Counter[int] = Counter()
        self._batch = 0
        self.failing = False

    def _opened(self, operators: ShardOperators) -> ShardOperators:
        if self.failing:
            advance = operators.advance

            def fail(*given: object) -> list[Envelope]:
                list(advance(*given))  # type: ignore[arg-type]
                raise Lost

            operators.advance = fail  # type: ignore[assignment, method-assign]
        return operators

    def attempt(self) -> None:
        """Do a batch with a payment of each account, and see to it that all are counted."""
        values = [json.dumps({"id": 1, "account": k, "amount": 1.5, "ms": 1}).encode() for k in range(KEYS)]
        records = pa.table(
            {
                "value": pa.array(values, pa.binary()),
                "topic": pa.array(["payments"] * KEYS),
                "partition": pa.array([0] * KEYS, pa.int32()),
                "offset": pa.array(range(KEYS)),
            }
        )
        tick = Tick({self._source: (channel_name(self._source, "payments", 0),)}, ())
        waiting = self._entering.entering({self._source: [records]}, tick, self._batch, SHARDS)
        states = list(self._tasks.tasks(self._batch, waiting, SHARDS))
        Version.of(states, self._levels, SHARDS.shards).write(self._tasks.files, self._batch)
        (rows,) = gathered(waiting).outputs.values()
        added = rows.filter(pc.greater(rows.column(WEIGHT), 0))
        self._batch += 1
        counts = dict(zip(added.column(0).to_pylist(), added.column(1).to_pylist(), strict=True))
        assert counts == dict.fromkeys(range(KEYS), self._batch)

    def written(self) -> set[str]:
        """The files of the last batch."""
        names = self._tasks.files.names(blocks.FOLDER)
        return {f"{blocks.FOLDER}/{name}" for name in names if name.startswith(f"{self._batch - 1:09d}-")}

    def needed(self) -> set[str]:
        """Those of them that its version refers to."""
        found: set[str] = set()
        for level in Version.before(self._tasks.files, self._batch).levels.values():
            for place in level.manifests:
                manifest = Manifest.from_bytes(self._tasks.files.block(place).to_pybytes())
                found |= {place.file, *(each.file for each in manifest.blocks.values())}
        return found & self.written()


def test_a_failed_attempt_leaves_no_block_and_the_next_one_in_the_same_worker_counts_right(tmp_path: Path) -> None:
    sql = Sql()
    with computing_with(sql):
        running = Running(tmp_path, sql)
        for _ in range(BATCHES):
            running.failing = True
            with pytest.raises(Lost):
                running.attempt()
            running.failing = False
            running.attempt()
            assert running.written() == running.needed()


@pytest.mark.parametrize("removable", [True, False])
def test_blocks_that_were_merged_away_in_the_batch_that_wrote_them_are_removed_if_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removable: bool
) -> None:
    asked: list[str] = []

    def refuse(self: FolderFiles, names: list[str]) -> None:
        asked.extend(names)
        if names:
            raise PermissionError("a bucket may keep what is in it")

    if not removable:
        monkeypatch.setattr(FolderFiles, "remove", refuse)
    sql = Sql()
    with computing_with(sql):
        running = Running(tmp_path, sql)
        left: set[str] = set()
        for _ in range(BATCHES):
            running.attempt()
            left |= running.written() - running.needed()
    assert left == set(asked)
    assert bool(left) is not removable
