"""Answers of lookups in a checkpoint: the first one counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.answers import FOLDER, Answers
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
