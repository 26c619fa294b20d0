"""The golden pipelines over the files of a checkpoint: killed at any point, started again with another number of tasks,
they answer what they answer in one run.

A batch is done as tasks and driver do it: tasks write blocks and manifests, the driver writes the version when all
have, then Spark notes the batch. A try of it may end after any of these steps, and what it has left stays there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from operators.sql import Sql
from operators.state import block
from service.checkpoint import sweep as sweeping
from service.checkpoint.sweep import sweep
from service.checkpoint.version import ShardState, Version
from service.formats.contract import Decoder
from service.local.case import run_case
from service.local.runner import BatchOutput, LocalRunner, gathered
from service.local.verdict import compare
from service.plan.program import Program
from service.runtime.envelope import EGRESS, Envelope, Kind, table_of
from service.runtime.layout import Layout
from service.runtime.shard_operators import Ask
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick
from service.spark.query.shard_cache import ShardCache
from service.sql.pipeline import load
from tests.spark.levels_on_files import LevelsOnFiles, computing_with
from tests.test_pipelines import CASES

MOST_TASKS = 5
RESTARTED = 0.5
"""How many of the batches come after an orderly restart, those after a kill aside."""

KILLED = 0.4
"""How many of the tries of a batch are killed; of the first batch, one always is."""

MOST_KILLED = 2
"""Tries of a batch that are killed."""

SEED = 11

Written = dict[tuple[int, str, int], Any]
"""Rows, by where they come from. Which bytes are below a NULL is nobody's promise."""


class Try(NamedTuple):
    """A try of a batch: its tasks, those left to be done, and what those that are done have reported."""

    tasks: Iterator[ShardState]
    envelopes: list[Envelope]


class RestartedRunner(LocalRunner):
    """Runs a program over batches, as its base does, with its state in the files of a checkpoint, and is killed."""

    def __init__(
        self, program: Program, decoders: Mapping[int, Decoder], sql: Sql, ask: Ask, folder: Path, draw: random.Random
    ) -> None:
        super().__init__(program, decoders, MOST_TASKS, sql, ask)
        self._state = LevelsOnFiles(Topology(program), program.levels, str(folder), ask)
        self._stateful = program.levels
        self._draw = draw
        self._number = 0
        self._layout = Layout.of(1)
        self._was_killed = False
        self._start()

    def batch(self, records: Mapping[int, Sequence[pa.Table]], tick: Tick, now: int) -> BatchOutput:
        """Try the batch until it is noted as done; then killed tries go on, as tasks do that nobody has reached."""
        if self._draw.random() < RESTARTED:
            self._start()
        killed: list[Try] = []
        while True:
            envelopes = self.entering(records, tick, now, self._layout)
            this = Try(self._state.tasks(self._number, envelopes, self._layout), envelopes)
            if not self._is_killed(len(killed)):
                break
            self._kill(this)
            killed.append(this)
            # The batch has begun, so it is done with as many tasks: some may have committed their rows.
            self._state.cache = ShardCache()
        self._note(list(this.tasks))
        self._let_end(killed, written(this.envelopes))
        if self._stateful:
            sweep(self._state.files, self._number)
        self._number += 1
        return gathered(this.envelopes)

    def _start(self) -> None:
        """Begin as a new process, with another number of tasks and nothing in memory."""
        others = [number for number in range(1, MOST_TASKS + 1) if number != self._layout.shards]
        self._layout = Layout.of(self._draw.choice(others))
        self._state.cache = ShardCache()

    def _is_killed(self, before: int) -> bool:
        """Whether this try is killed, of a batch of which `before` were."""
        killed = before < MOST_KILLED and (not self._was_killed or self._draw.random() < KILLED)
        self._was_killed = self._was_killed or killed
        return killed

    def _kill(self, this: Try) -> None:
        """End a try after some of its tasks, after all of them, or after the version."""
        count = self._stateful * self._layout.shards
        done = self._draw.randint(0, count + 1)
        states = list(islice(this.tasks, done))
        if done > count:
            self._note(states)

    def _note(self, states: Sequence[ShardState]) -> None:
        """Write the version, as the driver does when all tasks have reported."""
        if self._stateful:
            Version.of(states, self._stateful, self._layout.shards).write(self._state.files, self._number)

    def _let_end(self, killed: Sequence[Try], right: Written) -> None:
        """Have the tasks of killed tries go on: nobody waits for them, but they compute the same, and write files."""
        kept, self._state.cache = self._state.cache, ShardCache()
        for this in killed:
            list(this.tasks)
            assert written(this.envelopes) == right
        self._state.cache = kept


def written(envelopes: Sequence[Envelope]) -> Written:
    """Return what of a batch goes to the topics, as text (NaN equals NaN), and into the digests of its markers."""
    rows = (Kind.OUTPUT, Kind.LATE, Kind.DEAD_ROWS, Kind.DEAD_RECORDS)
    return {
        (e.shard, e.channel, e.sequence): e.payload if e.kind == Kind.OFFSETS else repr(table_of(e).to_pylist())
        for e in envelopes
        if e.level == EGRESS and e.kind in (*rows, Kind.OFFSETS)
    }


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_a_pipeline_that_is_killed_and_restarted_with_other_numbers_of_tasks_answers_as_expected(
    case: Path, tmp_path: Path, shared: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "KEPT", 1)
    monkeypatch.setattr(block, "WRITTEN_EARLY", 2_000)  # some blocks of a batch are, some are not
    monkeypatch.setattr(block, "KEPT_MAPPED", 0)
    monkeypatch.setattr(block, "SEARCHED", 1)
    draw = random.Random(f"{case.name} {SEED}")
    made: list[RestartedRunner] = []

    def runner(program: Program, decoders: Mapping[int, Decoder], _: int, sql: Sql, ask: Ask) -> LocalRunner:
        made.append(RestartedRunner(program, decoders, sql, ask, tmp_path / str(len(made)), draw))
        return made[-1]

    outcome = run_case(case, load(case / "pipeline.sql", {}).jobs, shared, runner=runner)
    assert compare(case, outcome, shared) == []


@pytest.fixture(scope="module")
def shared() -> Iterator[Sql]:
    sql = Sql()
    with computing_with(sql):
        yield sql
