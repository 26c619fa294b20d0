"""Bytes that are written to a folder are counted once, whatever becomes of the files."""

from __future__ import annotations

import os
from pathlib import Path

from bench.footprint import Written, size_of


def test_a_file_counts_with_what_it_has_grown_by(tmp_path: Path):
    (tmp_path / "there").write_bytes(b"1234")
    written = Written(tmp_path)
    written.look()
    written.bytes = 0
    (tmp_path / "there").write_bytes(b"123456")
    (tmp_path / "state" / "0").mkdir(parents=True)
    (tmp_path / "state" / "0" / "1.delta").write_bytes(b"1" * 10)
    written.look()
    written.look()
    assert written.bytes == 2 + 10


def test_a_file_that_is_removed_was_written_all_the_same(tmp_path: Path):
    written = Written(tmp_path)
    (tmp_path / "old").write_bytes(b"1" * 10)
    written.look()
    (tmp_path / "old").unlink()
    (tmp_path / "new").write_bytes(b"1" * 5)
    written.look()
    assert written.bytes == 15
    assert size_of(tmp_path) == 5


def test_a_temporary_file_counts_under_its_last_name(tmp_path: Path):
    written = Written(tmp_path)
    temporary = tmp_path / ".1.delta.tmp"
    temporary.write_bytes(b"1" * 10)
    written.look()
    temporary.rename(tmp_path / "1.delta")
    written.look()
    assert written.bytes == 10


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path):
    assert size_of(tmp_path / "none") == 0


def test_a_file_with_two_names_takes_room_once(tmp_path: Path):
    (tmp_path / "one").write_bytes(b"1" * 10)
    os.link(tmp_path / "one", tmp_path / "other")
    assert size_of(tmp_path) == 10
