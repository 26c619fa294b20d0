"""Records that do not fit into their topic: the row is a dead letter that names the sizes, and its neighbours go on."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from service.formats.contract import OUT
from service.formats.record_size import RecordLimit
from service.formats.registry import encoder
from service.plan.table import Table
from service.plan.types import BIGINT, STRING
from service.record_packing import OF_A_HEADER, OVERHEAD, packed
from service.runtime.encoding import EncodedBlock, encode_changes
from tests.formats.wire import SQL, changes, table

COLUMNS = {"id": BIGINT, "note": STRING}
RANDOM = Random(5).randbytes(2_000).hex()
"""4,000 characters that no codec makes much smaller than 2,000 bytes."""

HALF, LARGE, SHORT = RANDOM[:600], RANDOM[:1_000], "short"
ROOM = RecordLimit("t", sent=1_000)


def block(sink: Table, room: RecordLimit, *given: tuple[int, Any], key: tuple[int, ...] | None = None) -> EncodedBlock:
    return encode_changes(changes(sink, *given), encoder(sink, (0, 1), "q", key, room=room), SQL)


def of(found: EncodedBlock) -> list[Any]:
    """What is written, as JSON; None for a tombstone."""
    return [None if value is None else json.loads(value) for value in found.records["value"].to_pylist()]


def dead(found: EncodedBlock) -> list[tuple[int, int]]:
    """Weight and id of the rows that are not written."""
    return [] if found.dead is None else [(r["_weight"], r["c0"]) for r in found.dead.to_pylist()]


def records(*values: bytes | None, headers: Any = None, key: bytes | None = None) -> pa.Table:
    rows = [{"key": key, "value": value, "partition": None, "timestamp": None, "headers": headers} for value in values]
    return pa.Table.from_pylist(rows, schema=OUT)


def test_a_row_whose_record_is_too_large_is_a_dead_letter_that_names_its_sizes() -> None:
    found = block(table(COLUMNS), ROOM, (1, (1, SHORT)), (1, (2, LARGE)), (1, (3, SHORT)))
    assert [row["id"] for row in of(found)] == [1, 3]
    assert dead(found) == [(1, 2)]
    assert found.dead is not None
    assert found.dead["_reason"].to_pylist() == [
        "its record has a key of 0 bytes and a value of 1018, and the producer sends 1000 at most: see"
        " 'properties.max.request.size'"
    ]


UPDATE = ((-1, (1, SHORT)), (1, (1, LARGE)))
BACK = ((-1, (1, LARGE)), (1, (1, SHORT)))
FORMS: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "debezium-json": ({}, [("d", SHORT, None)], [("c", None, SHORT)]),
    "changelog-json": ({}, [("-D", SHORT)], [("+I", SHORT)]),
    "canal-json": ({}, [("DELETE", SHORT)], [("INSERT", SHORT)]),
    "maxwell-json": ({}, [("delete", SHORT)], [("insert", SHORT)]),
    "ogg-json": ({}, [("D", SHORT)], [("I", SHORT)]),
    "json": ({"kind": "upsert-kafka", "key": ("id",)}, [None], [SHORT]),
}
"""By format: the table, what is written of an update to a row that is too large, and of one back from it."""


def seen(record: Any) -> Any:
    """What a record says, in short."""
    if record is None:
        return None
    if "op" in record and "before" in record:
        return record["op"], *(record[side] and record[side]["note"] for side in ("before", "after"))
    if "data" in record:
        data = record["data"]
        return record.get("op") or record["type"], (data[0] if isinstance(data, list) else data)["note"]
    if "op_type" in record:
        return record["op_type"], (record.get("after") or record["before"])["note"]
    return record["note"]


@pytest.mark.parametrize("form", FORMS)
def test_the_sink_holds_the_rows_that_fit(form: str) -> None:
    more, to_large, from_large = FORMS[form]
    sink = table(COLUMNS, form, **more)
    there, back = (block(sink, ROOM, *given, key=(0,)) for given in (UPDATE, BACK))
    assert list(map(seen, of(there))) == to_large
    assert dead(there) == [(1, 1)]
    assert list(map(seen, of(back))) == from_large
    assert dead(back) == ([] if "key" in more else [(-1, 1)])


@pytest.mark.parametrize("tombstones", [False, True])
def test_an_update_that_is_too_large_only_with_both_of_its_rows_is_written_as_two(tombstones: bool) -> None:
    sink = table(COLUMNS, "debezium-json", key=("id",) if tombstones else ())
    given = ((-1, (1, HALF)), (1, (1, HALF[::-1])), (-1, (2, SHORT)), (1, (2, SHORT + "er")))
    found = block(sink, ROOM, *given, key=(0,))
    assert [seen(each) and seen(each)[0] for each in of(found)] == ["d", "c", "u"]
    assert dead(found) == []


@pytest.mark.parametrize("codec", ["lz4", "zstd", "gzip", "snappy"])
def test_what_the_topic_takes_is_what_is_left_when_it_is_compressed(codec: str) -> None:
    even, uneven = b"a" * 50_000, Random(7).randbytes(50_000)
    room = RecordLimit("t", sent=1_000_000, stored=10_000, codec=codec)
    found = room.too_large(records(even, uneven, None))
    assert list(found) == [1]
    assert (
        "a value of 50000, compressed to 50128, and topic t takes 10000 at most: see its max.message.bytes" in found[1]
    )
    plain = RecordLimit("t", sent=1_000_000, stored=10_000).too_large(records(even, uneven, b"x"))
    assert list(plain) == [0, 1]
    assert RecordLimit("t", sent=1_000_000, codec=codec).too_large(records(even, uneven)) == {}


def test_headers_and_the_head_of_a_batch_count_for_the_topic_and_not_for_the_producer() -> None:
    room = RecordLimit("t", sent=1_000, stored=1_000 + OVERHEAD)
    headers = [{"key": "h", "value": b"12345"}]
    assert room.too_large(records(b"x" * 990, key=b"k" * 10)) == {}
    assert list(room.too_large(records(b"x" * 990, b"y" * 970, key=b"k" * 10, headers=headers))) == [0]
    assert list(room.too_large(records(b"x" * 991, key=b"k" * 10))) == [0]


def test_of_two_rooms_the_smaller_takes_what_both_take() -> None:
    one, other = RecordLimit("t", 10, 5, "lz4"), RecordLimit("t", 8, None, "zstd")
    assert one.smaller(other) == RecordLimit("t", 8, 5, None)
    assert one.smaller(replaced := RecordLimit("t", 20, 4, "lz4")) == replaced.smaller(one)
    one = RecordLimit("t", 10, None, refused=7, batch=3)
    assert one.smaller(other) == RecordLimit("t", 8, None, None, refused=7, batch=3)
    assert one.smaller(RecordLimit("t", 10, None, refused=6, batch=4)) == RecordLimit("t", 10, None, refused=6, batch=3)


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("key", [None, b"k" * 30])
def test_a_record_that_was_refused_does_not_fit_and_a_smaller_one_does(codec: str | None, key: bytes | None) -> None:
    headers = [{"key": "h", "value": b"12345"}]
    uneven = Random(7).randbytes(50_000)
    beside = OVERHEAD + OF_A_HEADER + len(b"h12345")
    room = RecordLimit("t", sent=1_000_000, codec=codec, refused=packed((key or b"") + uneven, beside, codec))
    found = room.too_large(records(uneven, uneven[:-9], key=key, headers=headers))
    assert list(found) == [0]
    assert f"topic t has refused one of {room.refused}: see its max.message.bytes" in found[0]
