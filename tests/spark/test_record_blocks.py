"""Blocks of Kafka records: what is made of them, and when the files of their values are given back."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.spark.query.record_blocks import OFFSET_BITS, records_of
from service.spark.query.value_files import ValueFiles

HEADER = 4096
"""As in `java/tailrace/kafka/ValueFile.java`."""

COLUMNS = (
    *("topic", "value_file", "value_block", "positions", "value_lengths", "key_lengths", "keys"),
    *("timestamps", "timestamp_types"),
    *("header_counts", "header_name_lengths", "header_names", "header_value_lengths", "header_values"),
)
EVERYTHING = ("key", "timestamp", "timestamp_type", "headers")


def ints(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def longs(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def value_file(folder: Path, values: bytes) -> str:
    path = folder / "values"
    path.write_bytes(bytes(HEADER) + values)
    return str(path)


def rows(*blocks: Mapping[str, Any]) -> pa.RecordBatch:
    """What the JVM hands over."""
    types = {"topic": pa.string(), "value_file": pa.string(), "value_block": pa.int64()}
    columns = [pa.array([b.get(name) for b in blocks], types.get(name, pa.binary())) for name in COLUMNS]
    return pa.record_batch(columns, names=list(COLUMNS))


def place(partition: int, offset: int) -> int:
    return (partition << OFFSET_BITS) + offset


def noted(path: str) -> tuple[int, int]:
    """The numbers of the block that was given back, and of the one that is computed."""
    freed, computing = struct.unpack("<qq", Path(path).read_bytes()[:16])
    return freed, computing


def test_a_block_has_all_columns_of_its_records(tmp_path: Path) -> None:
    path = value_file(tmp_path, b"onethree")
    block = {
        "topic": "t",
        "value_file": path,
        "value_block": 1,
        "positions": longs(place(3, 7), place(3, 9), place(70_000, 2**43)),
        "value_lengths": ints(3, -1, 5),
        "key_lengths": ints(-1, 0, 2),
        "keys": b"k3",
        "timestamps": longs(1_000, -(2**63), 3_000),
        "timestamp_types": ints(0, 1, 0),
        "header_counts": ints(2, -1, 1),
        "header_name_lengths": ints(1, 1, 2),
        "header_names": "abä".encode(),
        "header_value_lengths": ints(1, -1, 0),
        "header_values": b"x",
    }
    (records,) = records_of(rows(block), ValueFiles(), EVERYTHING)
    assert records.to_pydict() == {
        "value": [b"one", None, b"three"],
        "key": [None, b"", b"k3"],
        "timestamp": pa.array([1_000, None, 3_000], pa.timestamp("us")).to_pylist(),
        "timestamp_type": [0, 1, 0],
        "headers": [
            [{"key": "a", "value": b"x"}, {"key": "b", "value": None}],
            None,
            [{"key": "ä", "value": b""}],
        ],
        "partition": [3, 3, 70_000],
        "offset": [7, 9, 2**43],
        "topic": ["t", "t", "t"],
    }


def test_a_block_without_a_byte_of_values_has_no_file() -> None:
    block = {"topic": "t", "positions": longs(0, 1), "value_lengths": ints(-1, 0)}
    (records,) = records_of(rows(block), ValueFiles(), ())
    assert records["value"].to_pylist() == [None, b""]


def test_a_file_is_given_back_when_nothing_refers_to_its_values(tmp_path: Path) -> None:
    path, files = value_file(tmp_path, b"abcd"), ValueFiles()
    block = {
        "topic": "t",
        "value_file": path,
        "value_block": 5,
        "positions": longs(0, 1),
        "value_lengths": ints(2, 2),
    }
    (records,) = records_of(rows(block), files, ())
    last = records["value"].slice(1)
    del records
    assert noted(path) == (0, 0)
    assert last.to_pylist() == [b"cd"]
    del last
    assert noted(path) == (5, 0)


def test_a_file_that_has_grown_is_mapped_again(tmp_path: Path) -> None:
    path, files = value_file(tmp_path, b"abcd"), ValueFiles()
    files.values(path, 1, 4)
    with open(path, "ab") as file:
        file.write(b"efgh")
    values = files.values(path, 2, 8)
    assert values.to_pybytes() == b"abcdefgh"
    assert noted(path) == (1, 0)


def test_a_worker_computes_while_it_has_a_block_and_neither_waits_nor_hands_rows_on(tmp_path: Path) -> None:
    path, files = value_file(tmp_path, b"abcd"), ValueFiles()
    steps: list[tuple[str, int]] = []

    def blocks() -> Iterator[pa.Buffer]:
        for number in (1, 2):
            steps.append((f"asked for {number}", noted(path)[1]))
            yield files.values(path, number, 4)

    def task() -> Iterator[int]:
        for number, block in enumerate(files.computing(blocks())):
            steps.append(("has a block", noted(path)[1]))
            yield number
            steps.append(("goes on", noted(path)[1]))
            if number == 0:
                held.append(block)

    held: list[pa.Buffer] = []
    for number in files.handing_on(task()):
        steps.append((f"hands on {number}", noted(path)[1]))
    assert steps == [
        *(("asked for 1", 0), ("has a block", 1), ("hands on 0", 0), ("goes on", 1)),
        # It holds the first one, and asks for another.
        *(("asked for 2", 0), ("has a block", 2), ("hands on 1", 0), ("goes on", 2)),
    ]


@pytest.mark.parametrize("removed", [True, False])
def test_files_that_are_gone_are_let_go(tmp_path: Path, removed: bool) -> None:
    path, files = value_file(tmp_path, b"abcd"), ValueFiles()
    files.values(path, 1, 4)
    if removed:
        Path(path).unlink()
    files.begin()
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if path in line]
    assert bool(mapped) is not removed


def test_values_cannot_be_written_here(tmp_path: Path) -> None:
    path, files = value_file(tmp_path, b"abcd"), ValueFiles()
    with pytest.raises(ValueError, match="read-only"):
        np.frombuffer(files.values(path, 1, 4), np.uint8)[0] = 1
