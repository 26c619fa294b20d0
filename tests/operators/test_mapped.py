"""Blocks in mapped files, whose pages are given back, and blocks that are written before the end of a batch."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from operators.state import block
from operators.state.lookup import find
from operators.state.mapped import MappedBytes
from operators.state.operator_state import State, TableKind, TraceSpec

VALUES = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
SPECS = {"t": TraceSpec(schema=VALUES, kind=TableKind.KEYED)}
ROWS = 200
KEYS = np.arange(ROWS, dtype=np.uint64)


def rows(text: str) -> pa.Table:
    return pa.table([np.arange(ROWS), [text * 20] * ROWS], schema=VALUES)


def mapped(path: Path) -> MappedBytes:
    with pa.memory_map(str(path), "r") as file:
        return MappedBytes(file.read_buffer())


def resident(path: Path) -> int:
    """KiB of a file that this process has mapped."""
    maps = Path("/proc/self/smaps").read_text()
    found = re.findall(rf"{re.escape(str(path))}\n(?:\w+:.*\n)*?Rss:\s+(\d+)", maps)
    return sum(map(int, found))


def test_pages_that_were_given_back_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "block"
    path.write_bytes(bytes(range(256)) * 4096)
    block = mapped(path)
    assert block.data.to_pybytes() == path.read_bytes()
    assert resident(path) == 1024
    block.give_back()
    assert resident(path) == 0
    assert block.data.to_pybytes() == path.read_bytes()


def test_a_part_of_a_file_and_nothing_of_it_are_given_back_too(tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(bytes(range(256)) * 64)
    with pa.memory_map(str(path), "r") as file:
        file.seek(5000)
        part, nothing = MappedBytes(file.read_buffer(7000)), MappedBytes(file.read_buffer(0))
    for each in (part, nothing):
        each.give_back()
    assert part.data.to_pybytes() == path.read_bytes()[5000:12_000]


class Storage:
    """Keeps blocks in files, and where that is `early`, as soon as they are made."""

    def __init__(self, folder: Path, early: bool = True) -> None:
        self.folder, self.early = folder, early
        self.manifest: bytes | None = None
        self.written_early: set[str] = set()

    def open(self) -> State:
        return State.open(SPECS, self.manifest, self._fetch, write_early=self._write_early)

    def seal(self, state: State) -> None:
        saved = state.seal()
        for name, data in saved.added.items():
            (self.folder / name).write_bytes(data)
        for name in saved.removed:
            (self.folder / name).unlink()
        self.manifest = saved.manifest
        self.written_early = set(saved.written_early)

    def _fetch(self, name: str) -> MappedBytes:
        return mapped(self.folder / name)

    def _write_early(self, name: str, data: pa.Buffer) -> bool:
        if self.early:
            (self.folder / name).write_bytes(data)
        return self.early

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block is a large one."""
    monkeypatch.setattr(block, "WRITTEN_EARLY", 0)
    monkeypatch.setattr("operators.state.compaction._SMALLEST", 8)


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[MappedBytes]:
    counted: list[MappedBytes] = []
    give_back = MappedBytes.give_back

    def noted(self: MappedBytes) -> None:
        counted.append(self)
        give_back(self)

    monkeypatch.setattr(MappedBytes, "give_back", noted)
    return counted


@pytest.mark.parametrize(
    ("keys", "kept", "times"), [(1, 0, 3), (2, 0, 3), (3, 0, 1), (6, 0, 1), (7, 0, 0), (1, 1 << 20, 0)]
)
def test_pages_are_given_back_when_many_keys_were_searched_for_in_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_back: list[MappedBytes], keys: int, kept: int, times: int
) -> None:
    monkeypatch.setattr(block, "SEARCHED", keys)
    monkeypatch.setattr(block, "KEPT_MAPPED", kept)
    storage = Storage(tmp_path)
    state = storage.open()
    state["t"].add(rows("a"), KEYS)
    storage.seal(state)
    for _ in range(3):
        assert find(state["t"], KEYS[:2])["c0"].to_pylist() == [0, 1]
    assert len(given_back) == times


def test_pages_are_given_back_after_a_batch_that_read_nothing(tmp_path: Path, given_back: list[MappedBytes]) -> None:
    storage = Storage(tmp_path)
    state = storage.open()
    state["t"].add(rows("a"), KEYS)
    storage.seal(state)
    find(state["t"], KEYS[:2])
    counts = []
    for _ in range(3):
        storage.seal(state)
        counts.append(len(given_back))
    assert counts == [0, 1, 1]


def test_a_merge_that_waits_for_rows_does_not_hold_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_back: list[MappedBytes]
) -> None:
    monkeypatch.setattr("operators.state.upkeep.STEP_ROWS", 16)
    storage = Storage(tmp_path)
    state = storage.open()
    for batch in range(4):
        state["t"].add(rows(f"{batch}"), KEYS)
        storage.seal(state)
    assert [each for each in state["t"].blocks() if each.start > each.low], "the merge is at a place within a block"
    find(state["t"], KEYS)
    storage.seal(state)
    given_back.clear()
    storage.seal(state)
    assert given_back, "to ask how far the merge is reads nothing"


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("reopened", [False, True])
def test_blocks_written_early_are_those_that_would_have_been_written(
    tmp_path: Path, early: bool, reopened: bool
) -> None:
    storage = Storage(tmp_path, early)
    state = storage.open()
    known: set[str] = set()
    for batch in range(30):
        state["t"].replace(rows(f"{batch}"), KEYS, KEYS if batch else KEYS[:0])
        assert find(state["t"], KEYS)["c1"].to_pylist() == rows(f"{batch}")["c1"].to_pylist()
        storage.seal(state)
        listed = {each.id for each in state["t"].blocks()}
        assert listed <= storage.names()
        assert storage.written_early == (listed - known if early else set())
        known |= listed
        if reopened:
            state = storage.open()


def test_a_block_that_was_written_early_and_merged_away_in_the_same_batch_is_not_reported(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    state = storage.open()
    state["t"].add(rows("a"), KEYS)
    (first,) = state["t"].blocks()
    state["t"].clear()
    state["t"].add(rows("b"), KEYS)
    (second,) = state["t"].blocks()
    storage.seal(state)
    assert storage.written_early == {second.id}
    assert storage.names() == {first.id, second.id}, "the file of the first is its owner's to remove"
