"""What is handed to the writer arrives in Kafka as it is."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from service.kafka.errors import MessageTooLarge, Refused
from service.kafka.writer.client import TransactionClient
from service.kafka.writer.records import HEADERS, by_topic
from service.record_packing import OF_A_HEADER, OVERHEAD, packed
from tests.kafka.conftest import Query
from tests.spark.topics import messages

KEYS = pa.array([b"k", b"", None], pa.binary())
VALUES = pa.array([b"v", b"", None], pa.binary())
HEADERS_OF = [[("kind", b"+I"), ("kind", b"")], None, [("q", None)]]


def _content(message: Message) -> tuple[object, ...]:
    return message.key(), message.value(), message.headers()


@pytest.mark.parametrize("kind", [HEADERS, pa.map_(pa.string(), pa.binary())], ids=["list", "map"])
def test_keys_values_and_headers_null_or_empty(query: Query, kind: pa.DataType):
    headers = (
        [each and [{"key": k, "value": v} for k, v in each] for each in HEADERS_OF] if kind == HEADERS else HEADERS_OF
    )
    records = query.rows("", "", "", key=KEYS, value=VALUES, headers=pa.array(headers, kind))
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(records)
        attempt.commit()
    assert [_content(message) for message in messages(query.bootstrap, query.topic)] == [
        (b"k", b"v", HEADERS_OF[0]),
        (b"", b"", None),
        (None, None, HEADERS_OF[2]),
    ]


def test_a_slice_is_sent_as_the_slice_that_it_is(query: Query):
    headers = pa.array([[{"key": str(row), "value": b"x"}] for row in range(6)], HEADERS)
    whole = query.rows(*"abcdef", key=pa.array([None, b"1", b"2", None, b"4", b"5"], pa.binary()), headers=headers)
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(whole.slice(1, 3))
        attempt.commit()
    assert [_content(message) for message in messages(query.bootstrap, query.topic)] == [
        (b"1", b"b", [("1", b"x")]),
        (b"2", b"c", [("2", b"x")]),
        (None, b"d", [("3", b"x")]),
    ]


def test_time_and_partition_are_kept_where_given(query: Query, make_topic):
    query.topic = make_topic(partitions=3)
    times = pa.array([1_700_000_000_000, None, 1_700_000_000_002], pa.int64())
    records = query.rows("a", "b", "c", partition=pa.array([2, 0, 1], pa.int32()), timestamp=times)
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(records)
        attempt.commit()
    found = [(m.partition(), m.value(), m.timestamp()[1]) for m in messages(query.bootstrap, query.topic)]
    assert [(partition, value) for partition, value, _ in found] == [(0, b"b"), (1, b"c"), (2, b"a")]
    assert found[1][2] == 1_700_000_000_002
    assert found[2][2] == 1_700_000_000_000
    assert found[0][2] > 1_700_000_000_002


def test_one_batch_may_go_to_several_topics(query: Query, make_topic):
    late = make_topic("late")
    records = pa.record_batch({"topic": [query.topic, late, query.topic], "value": pa.array([b"1", b"2", b"3"])})
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(records)
        report = attempt.commit()
    assert report.topics == {query.topic: 2, late: 1}
    assert query.committed() == ["1", "3"]
    assert [message.value() for message in messages(query.bootstrap, late)] == [b"2"]


def test_keys_are_partitioned_as_java_does(query: Query, make_topic):
    query.topic = make_topic(partitions=4)
    keys = [str(row).encode() for row in range(200)]
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows(*["v"] * 200, key=pa.array(keys, pa.binary())))
        attempt.commit()
    found = {message.key(): message.partition() for message in messages(query.bootstrap, query.topic)}
    assert found == {key: _murmur2(key) % 4 for key in keys}


def test_a_large_batch_keeps_its_order(query: Query):
    values = [f"{row:07d}" for row in range(120_000)]
    with query.attempt(0) as attempt:
        attempt.begin()
        for first in range(0, len(values), 40_000):
            attempt.send(query.rows(*values[first : first + 40_000]))
        assert attempt.commit().rows == len(values)
    assert query.committed() == values


@pytest.mark.parametrize("limit", ["the producer's", "the topic's"])
@pytest.mark.parametrize("annotated", [False, True], ids=["plain", "with time"])
def test_a_record_that_is_too_large_is_named(query: Query, make_topic, limit: str, annotated: bool):
    size = 1_100_000 if limit == "the producer's" else 60_000
    query.topic = make_topic(max_message_bytes="1000000" if limit == "the producer's" else "10000")
    given = {"timestamp": pa.array([1, 2], pa.int64())} if annotated else {}
    big = random.Random(1).randbytes(size // 2).hex()  # what compresses well is small enough for any topic
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows("small", big, **given))
        with pytest.raises(MessageTooLarge) as raised:
            attempt.commit()
    assert query.topic in raised.value.primary
    assert str(size) in (raised.value.detail or "")
    assert query.write(0, "small").outcome == "committed"


HEADER = pa.array([[{"key": "h", "value": b"12345"}]], HEADERS)
ALONE, BATCH = random.Random(1).randbytes(30_000).hex(), 50_000


@pytest.mark.parametrize("codec", [None, "lz4"])
@pytest.mark.parametrize(
    ("values", "headers", "alone", "together"),
    [
        ([ALONE], None, [ALONE], 0),
        ([ALONE], HEADER, [ALONE], 0),
        (["small", ALONE], None, [ALONE], 0),
        (["small", ALONE[:20_000]], None, [], BATCH),
    ],
    ids=["alone", "with a header", "beside a batch", "in a batch"],
)
def test_what_a_topic_refused_is_reported(
    query: Query, make_topic, codec: str | None, values: list[str], headers: Any, alone: list[str], together: int
):
    query.topic = make_topic(max_message_bytes="10000", partitions=1)
    query.kafka |= {"batch.size": str(BATCH), "compression.type": codec or "none"}
    given = {} if headers is None else {"headers": headers}
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows(*values, **given))
        with pytest.raises(MessageTooLarge) as raised:
            attempt.commit()
    beside = OVERHEAD + (0 if headers is None else OF_A_HEADER + len(b"h12345"))
    sizes = [packed(each.encode(), beside, codec) for each in alone]
    assert raised.value.refused == {query.topic: Refused(min(sizes, default=0), together)}


def test_a_record_that_is_too_large_is_named_even_where_another_topic_is_the_next_to_fail(query: Query, make_topic):
    query.topic, other = make_topic(max_message_bytes="10000"), make_topic("other")
    big = random.Random(1).randbytes(30_000).hex()
    small = pa.record_batch({"topic": [other], "value": pa.array([b"small"])})
    with query.attempt(0) as attempt:
        attempt.begin()
        with pytest.raises(MessageTooLarge) as raised:
            _send_for_ever(attempt, query.rows(*[big] * 80), small)  # so much that some is sent, and refused, at once
    assert raised.value.primary == f"topic {query.topic} refused the records"
    assert "max.message.bytes of the topic" in (raised.value.hint or "")
    assert query.write(0, "small").outcome == "committed"


def test_every_record_needs_a_topic():
    with pytest.raises(ValueError, match="topic"):
        list(by_topic(pa.record_batch({"topic": pa.array(["t", None]), "value": pa.array([b"1", b"2"])})))


def test_columns_that_are_null_in_every_row_cost_nothing():
    nulls = pa.array([None, None], pa.int32())
    (rows,) = by_topic(pa.record_batch({"topic": ["t", "t"], "value": pa.array([b"1", b"22"]), "partition": nulls}))
    assert (rows.partition, rows.key, rows.headers, rows.rows, rows.size) == (None, None, None, 2, 3)


def _send_for_ever(attempt: TransactionClient, first: pa.RecordBatch, then: pa.RecordBatch) -> None:
    attempt.send(first)
    while True:
        attempt.send(then)


def _murmur2(data: bytes) -> int:
    """Kafka's murmur2, made positive as its partitioner does: an oracle written from the algorithm's description."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF
