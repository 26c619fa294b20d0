"""A checkpoint of each format that was ever released is read: its next batch answers what it answered then.

Each folder of FORMATS is a checkpoint as a version of that format left it, after three batches: its files, the query
(`query.sql`) and what the fourth batch answered (`answers.json`). Since format 7 there are golden pipelines as well,
with everything that keeps state. `python -m tests.spark.kept_checkpoints` makes them; what was made is never made
again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from operators.sql import Sql
from service.deployment.upgrading import remembered
from service.plan.upgrade import Fate
from service.runtime.shard_operators import FORMAT, READABLE
from tests.spark import test_upgrades as upgrades
from tests.spark.kept_checkpoints import (
    BATCHES,
    FORMATS,
    SHARDS,
    SUFFIX,
    cases,
    held_in,
    jobs_of,
    kinds,
    service,
    unpacked,
    written,
)
from tests.spark.test_upgrades import QUERY_BEFORE, Service

sql = upgrades.sql
KEPT = sorted(FORMATS.glob(f"*/pipelines/*{SUFFIX}"))


def kept(name: str, folder: Path, sql: Sql) -> Service:
    """A service that goes on with a copy of the checkpoint of a format."""
    shutil.copytree(FORMATS / name / "checkpoint", folder / "checkpoint")
    service = Service(folder / "checkpoint", sql)
    service.batch = BATCHES
    service.start((FORMATS / name / "query.sql").read_text())
    return service


@pytest.mark.parametrize("name", sorted(each.name for each in FORMATS.iterdir()))
def test_a_checkpoint_of_each_format_goes_on(name: str, tmp_path: Path, sql: Sql) -> None:
    service = kept(name, tmp_path, sql)
    assert service.upgrade is None, "it is the same query, in whatever words the checkpoint has it"
    assert written(service.do(3)) == json.loads((FORMATS / name / "answers.json").read_text())


def test_there_is_one_of_each_format_that_is_read() -> None:
    there = {int(each.name) for each in FORMATS.iterdir()}
    assert there == set(READABLE), "a new format leaves checkpoints for the versions to come"


def test_state_keeps_its_name_when_identities_are_computed_otherwise(tmp_path: Path, sql: Sql) -> None:
    known = json.loads((FORMATS / "6" / "checkpoint" / "tailrace" / "fixed.json").read_text())
    service = kept("6", tmp_path, sql)
    before = {each["identity"] for each in known["meaning"]["operators"]}
    assert {each.kept_as for each in service.program.meaning.operators} == before == service.states()
    assert not before & {each.identity for each in service.program.meaning.operators}
    service.do(2)
    stored = remembered(service.program.meaning)
    assert stored["format"] == FORMAT
    again = Service(service.folder, sql)
    again.batch = service.batch
    again.start(QUERY_BEFORE)
    assert (again.upgrade, again.states()) == (None, before), "and is found under it after the next start"
    assert any(again.do(3).values())


def test_a_checkpoint_of_format_6_may_be_taken_over_by_another_query(tmp_path: Path, sql: Sql) -> None:
    service = kept("6", tmp_path, sql)
    service.memory.write("fixed", json.loads((FORMATS / "6" / "checkpoint" / "tailrace" / "fixed.json").read_text()))
    service.start(upgrades.changed(upgrades.CHANGES["an INSERT and its operator are gone"]))
    assert service.upgrade is not None
    assert len(service.upgrade.of(Fate.KEPT)) == 4
    assert service.upgrade.of(Fate.GONE) == ["top_n_1 of the query before"]
    assert any(service.do(3).values())


@pytest.mark.parametrize("archive", KEPT, ids=lambda path: f"{path.parts[-3]}-{path.name.removesuffix(SUFFIX)}")
def test_a_kept_pipeline_goes_on_as_if_it_had_always_run(archive: Path, tmp_path: Path, sql: Sql) -> None:
    with unpacked(archive) as (folder, done):
        case = folder / "case"
        for number, job in enumerate(jobs_of(case)):
            with (
                service(case, job, folder / f"checkpoint_{number}", sql) as going,
                service(case, job, tmp_path / str(number), sql) as always,
            ):
                assert going.upgrade is None
                going.pass_to(done)
                always.go_to(done)
                assert done < len(going.times)
                for _ in range(done, len(going.times)):
                    assert going.do(SHARDS) == always.do(SHARDS)


def test_kept_pipelines_hold_rows_in_every_table_of_every_kernel_and_every_aggregate(sql: Sql) -> None:
    there = set().union(*map(kinds, cases()))
    held = set().union(*(held_in(each, sql) for each in KEPT if each.parts[-3] == str(FORMAT)))
    assert there - held == set(), "python -m tests.spark.kept_checkpoints keeps what is new"
