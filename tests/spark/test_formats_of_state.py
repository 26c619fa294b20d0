"""A checkpoint of each format that was ever released is read: its next batch answers what it answered then.

Each folder of FORMATS is a checkpoint as a version of that format left it, after three batches: its files, the query
(`query.sql`) and what the fourth batch answered (`answers.json`). They are never made again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from operators.sql import Sql
from service.runtime.shard_operators import FORMAT
from tests.spark import test_upgrades as upgrades
from tests.spark.test_upgrades import QUERY_BEFORE, Rows, Service

sql = upgrades.sql
FORMATS = Path(__file__).parent / "formats_of_state"
BATCHES = 3


def written(answers: Mapping[str, Rows]) -> dict[str, list[list[object]]]:
    """The changes of each table, in JSON values."""
    return {table: sorted([*map(str, row), n] for row, n in rows.items()) for table, rows in sorted(answers.items())}


def make(folder: Path, sql: Sql) -> None:
    """Leave a checkpoint of today's format in `folder`, for a test of tomorrow."""
    service = Service(folder / "checkpoint", sql)
    service.start(QUERY_BEFORE)
    for _ in range(BATCHES):
        service.do(2)
    shutil.copytree(folder / "checkpoint", folder / "going")
    going = Service(folder / "going", sql)
    going.batch = BATCHES
    going.start(QUERY_BEFORE)
    (folder / "query.sql").write_text(QUERY_BEFORE)
    (folder / "answers.json").write_text(json.dumps(written(going.do(3)), indent=1) + "\n")
    shutil.rmtree(folder / "going")


@pytest.mark.parametrize("name", sorted(each.name for each in FORMATS.iterdir()))
def test_a_checkpoint_of_each_format_goes_on(name: str, tmp_path: Path, sql: Sql) -> None:
    folder = FORMATS / name
    shutil.copytree(folder / "checkpoint", tmp_path / "checkpoint")
    service = Service(tmp_path / "checkpoint", sql)
    service.batch = BATCHES
    service.start((folder / "query.sql").read_text())
    assert written(service.do(3)) == json.loads((folder / "answers.json").read_text())


def test_there_is_one_of_the_format_of_today() -> None:
    assert (FORMATS / str(FORMAT)).is_dir(), "a new format leaves a checkpoint for the versions to come: see `make`"
