"""Checkpoints that are kept for the versions to come: `python -m tests.spark.kept_checkpoints` makes those of today.

Of each format there is one of a query whose changes are tested, with what its next batch answered. Of golden pipelines
there are archives: the folder of the case as it was, and the checkpoint of each of its jobs after some of its batches.
There are as few as have rows in each table of each kernel that keeps state, and every aggregate. What was made once is
never made again: only for what is new, one more is added.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import Decoder
from service.formats.registry import decoder
from service.inspection.kept_state import CheckpointState
from service.local.case import START, STEP
from service.local.databases import CaseDatabases, databases
from service.local.feed import Feed
from service.local.inputs import ROWS, clock, read
from service.local.prepared import PreparedRows
from service.local.text_formats import in_text
from service.plan.kept_tables import OPERATORS, kept_operators
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Job
from service.plan.program import Program, Source
from service.runtime.shard_operators import FORMAT, ShardOperators
from service.runtime.watermarks import Tick, channel_name
from service.spark.query import shard_state
from service.sql.pipeline import load
from tests.spark.test_upgrades import QUERY_BEFORE, Rows, Service
from tests.tar_files import unpack

PIPELINES = Path(__file__).parents[1] / "pipelines"
FORMATS = Path(__file__).parent / "formats_of_state"
SHARDS = 2
BATCHES = 3
"""As many are done of the query whose changes are tested."""

SUFFIX = ".tar.xz"
DONE = "done.txt"
"""The file of an archive that says how many batches were done."""


def written(answers: Mapping[str, Rows]) -> dict[str, list[list[object]]]:
    """The changes of each table, in JSON values."""
    return {table: sorted([*map(str, row), n] for row, n in rows.items()) for table, rows in sorted(answers.items())}


def make(folder: Path, sql: Sql) -> None:
    """Leave a checkpoint of today's format in `folder`, for a test of tomorrow."""
    made = Service(folder / "checkpoint", sql)
    made.start(QUERY_BEFORE)
    for _ in range(BATCHES):
        made.do(SHARDS)
    shutil.copytree(folder / "checkpoint", folder / "going")
    going = Service(folder / "going", sql)
    going.batch = BATCHES
    going.start(QUERY_BEFORE)
    (folder / "query.sql").write_text(QUERY_BEFORE)
    (folder / "answers.json").write_text(json.dumps(written(going.do(3)), indent=1) + "\n")
    shutil.rmtree(folder / "going")


class CaseService(Service):
    """Does the batches of a job of a golden pipeline on the files of a checkpoint."""

    def __init__(self, case: Path, program: Program, looked_up: CaseDatabases, folder: Path, sql: Sql) -> None:
        super().__init__(folder, sql)
        self._looked_up = looked_up
        self._inputs = {s.table.name: read(case, s.table) for s in program.sources}
        self._feeds = {s.id: Feed(s.table, self._inputs[s.table.name]) for s in program.sources}
        self.times = clock([*self._inputs.values(), *looked_up.inputs], START, STEP)
        self.run_program(program)
        self.memory.write(OPERATORS, [each.to_json() for each in kept_operators(self.program)])

    def decoder(self, source: Source) -> Decoder:
        given = self._inputs[source.table.name]
        if given.path.suffix == ROWS:
            return PreparedRows(source.table, source.columns, given, self.sql)
        return decoder(in_text(source.table), source.columns)

    def now(self) -> int:
        now = self.times[self.batch]
        self._looked_up.begin(self.batch, now)
        return now

    def arriving(self, source: Source, now: int) -> list[pa.Table]:
        return self._feeds[source.id].records(self.batch, now)

    def tick(self) -> Tick:
        sources, last = self.program.sources, len(self.times) - 1
        ended = {
            s.id
            for s in sources
            for number, arrival in enumerate(self._inputs[s.table.name].arrivals)
            if (arrival.ended and number <= self.batch)
        } | {s.id for s in sources if self.batch == last and s.table.connector.bounded.mode != "unbounded"}
        channels = {
            s.id: tuple(channel_name(s.id, self._feeds[s.id].topic, p) for p in self._inputs[s.table.name].partitions)
            for s in sources
        }
        return Tick(channels, tuple(sorted(ended)))

    def opened(self, operators: ShardOperators) -> ShardOperators:
        operators.ask_with(self._looked_up.ask)
        return operators

    def go_to(self, batch: int) -> list[dict[str, Rows]]:
        """The answers of each batch up to `batch`, which is not done."""
        return [self.do(SHARDS) for _ in range(self.batch, batch)]

    def pass_to(self, batch: int) -> None:
        """Go to a batch without doing those before it: another process has."""
        for self.batch in range(batch):
            now = self.now()
            for source in self.program.sources:
                self.arriving(source, now)
        self.batch = batch

    def held(self) -> set[str]:
        """The tables of kernels that have rows, and the aggregates."""
        state = CheckpointState(self.files, self.batch - 1)
        kernels = {operator.identity: type(operator.kernel).__name__ for operator in self.program.operators}
        return {
            f"{kernels[operator.identity]} {table.name}"
            for operator in state.operators
            for table in state.figures(operator, count=False)
            if table.rows
        } | _aggregates(self.program)


def jobs_of(case: Path) -> tuple[Job, ...]:
    """The jobs of a golden pipeline."""
    return load(case / "pipeline.sql", {}).jobs


@contextmanager
def service(case: Path, job: Job, folder: Path, sql: Sql) -> Iterator[CaseService]:
    """A service for a job of a case, with the checkpoint in `folder`."""
    program = compile_job(job, late_rows=(case / "late.changes").exists())
    with databases(case, program, sql) as looked_up:
        yield CaseService(case, program, looked_up, folder, sql)


def kinds(case: Path) -> set[str]:
    """What a pipeline has that keeps state: the tables of kernels, and aggregates."""
    programs = [compile_job(job) for job in jobs_of(case)]
    tables = {
        f"{type(operator.kernel).__name__} {table}"
        for program in programs
        for operator in program.operators
        for table in operator.kernel.traces()
    }
    return tables.union(*map(_aggregates, programs))


def cases() -> list[Path]:
    """The folders of all golden pipelines."""
    return sorted(each.parent for each in PIPELINES.glob("*/pipeline.sql"))


def _aggregates(program: Program) -> set[str]:
    return {name for each in program.meaning.operators for name in each.versions if name.startswith("aggregate")}


class Cut(NamedTuple):
    """How many batches of a case are done before it is kept, and what has rows then."""

    done: int
    held: set[str]


def best_cut(case: Path, sql: Sql) -> Cut:
    """Find where most tables of a case have rows; one batch at least is left."""
    found: dict[int, set[str]] = {}
    with TemporaryDirectory() as scratch:
        for number, job in enumerate(jobs_of(case)):
            with service(case, job, Path(scratch) / str(number), sql) as running:
                for done in range(1, len(running.times)):
                    running.go_to(done)
                    found.setdefault(done, set()).update(running.held())
    return max((Cut(*each) for each in found.items()), key=lambda cut: (len(cut.held), cut.done), default=Cut(0, set()))


def keep(case: Path, done: int, target: Path, sql: Sql) -> None:
    """Do the first batches of a case, and put its checkpoints into an archive."""
    with TemporaryDirectory() as scratch:
        made = Path(scratch) / case.name
        shutil.copytree(case, made / "case")
        for number, job in enumerate(jobs_of(case)):
            with service(case, job, made / f"checkpoint_{number}", sql) as running:
                running.go_to(done)
        (made / DONE).write_text(f"{done}\n")
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(target / f"{case.name}{SUFFIX}", "w:xz") as archive:
            archive.add(made, case.name)


@contextmanager
def unpacked(archive: Path) -> Iterator[tuple[Path, int]]:
    """The folder of an archive, and how many batches of its case are done."""
    with TemporaryDirectory() as scratch:
        unpack(archive, Path(scratch))
        folder = Path(scratch) / archive.name.removesuffix(SUFFIX)
        yield folder, int((folder / DONE).read_text())


def held_in(archive: Path, sql: Sql) -> set[str]:
    """What has rows in an archive."""
    found: set[str] = set()
    with unpacked(archive) as (folder, done):
        for number, job in enumerate(jobs_of(folder / "case")):
            with service(folder / "case", job, folder / f"checkpoint_{number}", sql) as kept:
                kept.pass_to(done)
                found |= kept.held()
    return found


def main() -> None:
    """Keep what has no kept checkpoint of the format of today."""
    folder, sql = FORMATS / str(FORMAT), Sql()
    target = folder / "pipelines"
    shard_state.worker_sql = lambda scratch: sql  # type: ignore[attr-defined]
    if not (folder / "checkpoint").exists():
        make(folder, sql)
    kept = set().union(*(held_in(each, sql) for each in target.glob(f"*{SUFFIX}")))
    cuts = {case: best_cut(case, sql) for case in cases() if kinds(case) - kept}
    left = set().union(*(cut.held for cut in cuts.values())) - kept
    while left:
        case = max(cuts, key=lambda each: len(cuts[each].held & left))
        print(f"{case.name}, after {cuts[case].done} batches", *sorted(cuts[case].held & left), sep="\n  ")
        keep(case, cuts[case].done, target, sql)
        left -= cuts[case].held


if __name__ == "__main__":
    main()
