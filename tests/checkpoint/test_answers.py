"""Answers of lookups in a checkpoint: the first one counts."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path
from stat import S_ISDIR

import pyarrow as pa
import pytest

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.answers import FOLDER, Answers
from service.checkpoint.files import NoHardLinks
from service.checkpoint.sweep import KEPT, sweep
from service.checkpoint.version import Version

KEYS = pa.table({"c0": [1, 2]})
OTHER_KEYS = pa.table({"c0": [1, 3]})


def table(*names: str) -> pa.Table:
    return pa.table({"c0": pa.array(names, pa.string())})


def never() -> pa.Table:
    raise AssertionError("the database was asked again")


def test_a_batch_that_is_done_again_has_the_answers_that_it_had(tmp_path: Path):
    files = CheckpointAddress(str(tmp_path)).open()
    assert Answers(files, 5, 1, 0).of("join", KEYS, lambda: table("a")) == table("a")
    assert Answers(files, 5, 1, 0).of("join", KEYS, never) == table("a")
    assert Answers(files, 5, 1, 0).of("join", KEYS, never).schema == table("a").schema


def test_of_two_tries_at_the_same_time_the_first_that_has_written_counts_for_both(tmp_path: Path):
    files = CheckpointAddress(str(tmp_path)).open()

    def slowly() -> pa.Table:
        assert Answers(files, 5, 1, 0).of("join", KEYS, lambda: table("quick")) == table("quick")
        return table("slow")

    assert Answers(files, 5, 1, 0).of("join", KEYS, slowly) == table("quick")
    assert [name for name in files.names(FOLDER) if name.endswith(".new")] == []


def test_an_answer_that_a_loss_of_power_has_emptied_was_never_given(tmp_path: Path):
    files = CheckpointAddress(str(tmp_path)).open()
    Answers(files, 5, 1, 0).of("join", KEYS, lambda: table("lost"))
    for path in (tmp_path / FOLDER).iterdir():
        path.write_bytes(b"")
    assert Answers(files, 5, 1, 0).of("join", KEYS, lambda: table("a")) == table("a")
    assert Answers(files, 5, 1, 0).of("join", KEYS, never) == table("a")


def test_an_answer_is_on_the_disk_before_anybody_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []
    sync, link = os.fsync, os.link

    def synced(file: int) -> None:
        done.append("folder" if S_ISDIR(os.fstat(file).st_mode) else f"file of {os.fstat(file).st_size > 0}")
        sync(file)

    def linked(old: Path, new: Path) -> None:
        done.append("link")
        link(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    Answers(CheckpointAddress(str(tmp_path)).open(), 5, 1, 0).of("join", KEYS, lambda: table("a"))
    assert done == ["file of True", "link", "folder"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    def refused(old: Path, new: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refused)
    files = CheckpointAddress(str(tmp_path)).open()
    with pytest.raises(NoHardLinks, match=r"has no hard links(.|\n)*hint: .*NFS"):
        Answers(files, 5, 1, 0).of("join", KEYS, lambda: table("a"))
    assert not files.names(FOLDER)


def test_each_batch_shard_lookup_and_set_of_keys_has_answers_of_its_own(tmp_path: Path):
    files = CheckpointAddress(str(tmp_path)).open()
    places = [(5, 1, 0, "join", KEYS), (6, 1, 0, "join", KEYS), (5, 2, 0, "join", KEYS), (5, 1, 1, "join", KEYS)]
    places += [(5, 1, 0, "other", KEYS), (5, 1, 0, "join", OTHER_KEYS)]
    for number, (batch, level, shard, lookup, keys) in enumerate(places):
        answer = table(str(number))
        assert Answers(files, batch, level, shard).of(lookup, keys, partial(table, str(number))) == answer


def test_answers_are_removed_when_no_batch_can_ask_for_them_any_more(tmp_path: Path):
    files = CheckpointAddress(str(tmp_path)).open()
    for batch in range(KEPT + 3):
        Version({}).write(files, batch)
        Answers(files, batch, 1, 0).of("join", KEYS, lambda: table("a"))
    sweep(files, KEPT + 1)
    assert [int(name.partition("-")[0]) for name in files.names(FOLDER)] == list(range(2, KEPT + 3))
