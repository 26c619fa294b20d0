"""Files of attempts that were killed: they go before the batch is begun again, and nothing that may count does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.answers import FOLDER as ANSWERS
from service.checkpoint.batch_log import COMMITS, note_done
from service.checkpoint.blocks import FOLDER, LARGE, BlockWriter, Manifest
from service.checkpoint.files import Files, FolderFiles, StateMissing, StoredAt
from service.checkpoint.sweep import remove_leftovers
from service.checkpoint.version import LevelState, Version
from tests.spark.fake_s3 import fake_s3, s3_settings
from tests.spark.store_requests import RequestLog

BLOCKS = 3
"""Blocks that a task writes before its end."""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return FolderFiles(str(tmp_path))


def killed(files: Files, batch: int) -> list[StoredAt]:
    """What an attempt leaves that is killed after it has written some blocks, and while it writes another."""
    writer = BlockWriter(files, batch, 1, 0)
    places = [writer.add_at_once(pa.py_buffer(bytes(LARGE))) for _ in range(BLOCKS)]
    files.put(f"{places[-1].file}.4711.new", [b"half of a block"])
    return places


def ended(files: Files, batch: int, before: dict[str, StoredAt]) -> dict[str, StoredAt]:
    """An attempt that ends, of a driver that writes the version: the blocks of the state after it."""
    writer = BlockWriter(files, batch, 1, 0)
    blocks = before | {f"op:{batch}": writer.add_at_once(pa.py_buffer(b"%d" % batch * LARGE))}
    blocks[f"op:{batch}-small"] = writer.add(pa.py_buffer(b"small"))
    place = writer.add(pa.py_buffer(Manifest(b"{}", blocks).to_bytes()))
    writer.close()
    Version({1: LevelState({}, (place,))}).write(files, batch)
    return blocks


def held(files: Files, batch: int) -> dict[str, bytes]:
    """All blocks of the version of a batch."""
    (place,) = Version.before(files, batch + 1).levels[1].manifests
    manifest = Manifest.from_bytes(files.block(place).to_pybytes())
    return {key: files.block(block).to_pybytes() for key, block in manifest.blocks.items()}


def test_attempts_that_are_killed_one_after_another_leave_no_more_than_the_last_one(files: Files) -> None:
    state = ended(files, 6, ended(files, 5, {}))
    before = set(files.names(FOLDER))
    wanted = held(files, 6)
    for _ in range(5):
        remove_leftovers(files, 7)
        assert set(files.names(FOLDER)) == before
        killed(files, 7)
    assert len(files.names(FOLDER)) == len(before) + BLOCKS + 1
    assert held(files, 6) == wanted
    remove_leftovers(files, 7)
    after = ended(files, 7, state)
    assert held(files, 7).keys() == after.keys()


def test_a_version_that_its_driver_had_no_time_to_note_as_done_is_kept_with_all_that_it_names(files: Files) -> None:
    """Whether Spark notes the batch after all decides whether it counts: the JVM ends after the driver."""
    state = ended(files, 6, {})
    killed(files, 7)
    after = ended(files, 7, state)
    wanted = held(files, 7)
    for _ in range(3):
        remove_leftovers(files, 7)
        assert held(files, 7) == wanted
        killed(files, 7)
    note_done(files, 7)
    assert files.names(COMMITS) == ["7"]
    remove_leftovers(files, 8)
    ended(files, 8, after)
    assert held(files, 8).items() >= wanted.items()


def test_an_attempt_that_lives_on_leaves_what_it_writes_until_the_next_start(files: Files) -> None:
    state = ended(files, 6, {})
    places = killed(files, 7)
    remove_leftovers(files, 7)
    with pytest.raises(StateMissing):
        files.block(places[0])
    late = killed(files, 7)
    after = ended(files, 7, state)
    assert {place.file for place in late}.isdisjoint(place.file for place in after.values())
    assert held(files, 7).keys() == after.keys()


def test_a_version_that_a_loss_of_power_has_emptied_names_nothing(files: Files) -> None:
    ended(files, 6, {})
    before = files.names(FOLDER)
    killed(files, 7)
    files.put("tailrace/versions/000000007.json", [b""])
    remove_leftovers(files, 7)
    assert files.names(FOLDER) == before


def test_a_version_whose_manifest_is_missing_keeps_everything(files: Files) -> None:
    killed(files, 7)
    before = files.names(FOLDER)
    Version({1: LevelState({}, (StoredAt(f"{FOLDER}/000000007-1-0-gone", 0, 9),))}).write(files, 7)
    remove_leftovers(files, 7)
    assert files.names(FOLDER) == before


def test_answers_of_a_database_stay_since_the_batch_must_get_them_again(files: Files) -> None:
    files.put(f"{ANSWERS}/000000007-1-0-x", [b"rows"])
    remove_leftovers(files, 7)
    assert files.names(ANSWERS) == ["000000007-1-0-x"]


def test_a_start_that_finds_nothing_sends_a_store_two_requests() -> None:
    with fake_s3(requests := RequestLog()) as (address, _):
        hadoop = {name.removeprefix("spark.hadoop."): value for name, value in s3_settings(address).items()}
        remove_leftovers(CheckpointAddress("s3a://bucket/folder", hadoop).open(), 7)
    assert [each.kind for each in requests.all()] == ["HEAD", "LIST"]
