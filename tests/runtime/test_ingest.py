"""Level 0: records become rows, late rows and dead letters, and every shard receives the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest

from operators.sql import Sql
from operators.time import MIN_TIME
from service.formats.registry import decoder
from service.plan.lowering.lower import compile_job
from service.plan.program import Program, discarding
from service.runtime.envelope import EGRESS, PAYLOAD, Envelope, Kind, batch_of, unpack
from service.runtime.ingest import FEW, BadInput, Ingest
from service.runtime.layout import Layout
from service.runtime.partition_clocks import PartitionClock, from_bytes, newest, to_bytes
from service.runtime.shard import Shard
from service.runtime.shard_operators import ShardOperators
from service.runtime.shared_payloads import parted
from service.runtime.source_digest import LENGTH, digest_range
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE t (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'{options});
CREATE TABLE o (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT k, SUM(n) FROM t GROUP BY k;
"""


NOON = 1_704_110_400_000
"""Noon of the first day of 2024."""


def bytes_of(envelopes: list[Envelope]) -> int:
    """What Spark is handed for them."""
    return int(batch_of(envelopes).nbytes)


@pytest.mark.parametrize("tasks", [2, 64, 256])
def test_clocks_of_a_thousand_partitions_cost_a_batch_little(tasks: int) -> None:
    two_levels = PIPELINE.replace(
        "SELECT k, SUM(n) FROM t GROUP BY k",
        "SELECT CAST(s AS STRING), COUNT(*) FROM (SELECT k, SUM(n) AS s FROM t GROUP BY k) GROUP BY s",
    )
    program = compile_job(read(two_levels.format(options="")).jobs[0])
    topology, layout, sql = Topology(program), Layout.of(256), Sql()
    names = tuple(channel_name(0, "t", partition) for partition in range(1000))
    tick = Envelope(0, 1, Kind.TICK, 0, "tick", 0, 0, MIN_TIME, False, Tick({0: names}, ()).to_bytes())
    (one,) = (e for e in ingested([b'{"k": "a", "n": 1}'], shards=1) if e.kind == Kind.CLOCK)
    first = [tick]
    for task in range(tasks):
        clocks = [
            PartitionClock("t", partition, NOON - 10_000 * partition, digest_range("t", partition, 0, 1))
            for partition in range(task, 1000, tasks)
        ]
        first.append(one._replace(watermark=newest(clocks), payload=to_bytes(clocks)))
    for_each_shard = bytes_of(first)
    operators = ShardOperators(topology, 1, 0, layout, sql, None, lambda block: pytest.fail("there is no block"))
    shard = Shard(topology, 1, 0, layout, None)
    second = [e for e in shard.advance(first, lambda: operators) if e.kind == Kind.CLOCK]
    assert {e.shard for e in second} == set(range(layout.shards))
    known = shard.save()["sources"]["0"]["channels"]
    assert {name: known[name]["watermark"] for name in names} == {n: NOON - 10_000 * i for i, n in enumerate(names)}
    other = Shard(topology, 1, 1, layout, None)
    assert [e for e in other.advance(first, lambda: operators) if e.kind == Kind.CLOCK] == []
    assert layout.shards * for_each_shard + bytes_of(second) < 10_000_000


def ingested(
    values: list[bytes],
    options: str = "",
    limits: dict[str, int] | None = None,
    pipeline: str = PIPELINE,
    prepare: Callable[[Program], Program] = lambda program: program,
    shards: int = 2,
) -> list[Envelope]:
    program = prepare(compile_job(read(pipeline.format(options=options)).jobs[0]))
    source = program.sources[0]
    records = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["t"] * len(values)),
            "partition": pa.array([3] * len(values), pa.int32()),
            "offset": pa.array(range(10, 10 + len(values)), pa.int64()),
        }
    )
    ingest = Ingest(Topology(program), source, decoder(source.table, source.columns), Layout(shards), Sql(), limits)
    return list(ingest.run([records], now=0))


def of(kind: Kind, envelopes: list[Envelope]) -> list[Envelope]:
    return [e for e in envelopes if e.kind == kind]


def records(values: Sequence[bytes | None], partition: int) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["t"] * count),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )


GOOD, BAD = b'{"k": "a", "n": 1}', b"no json"


def test_a_bad_record_leaves_for_the_dead_letter_topic_and_its_neighbours_go_on() -> None:
    envelopes = ingested([GOOD, BAD, GOOD])
    (dead,) = of(Kind.DEAD_RECORDS, envelopes)
    assert dead.level == EGRESS
    assert unpack(dead.payload)["offset"].to_pylist() == [11]
    assert sum(unpack(e.payload).num_rows for e in of(Kind.ROWS, envelopes)) == 1  # one partial sum for "a"


def test_a_table_that_skips_bad_records_only_counts_them() -> None:
    envelopes = ingested([GOOD, BAD], options=", 'tailrace.bad-input' = 'skip'")
    assert of(Kind.DEAD_RECORDS, envelopes) == []
    (metrics,) = of(Kind.METRICS, envelopes)
    assert b"decode_errors_total" in metrics.payload


def test_a_table_that_fails_on_bad_records_says_where_the_first_one_is() -> None:
    with pytest.raises(BadInput, match=r"table t, offset 11 of t/3: "):
        ingested([GOOD, BAD], options=", 'tailrace.bad-input' = 'fail'")


def test_every_shard_hears_the_clock_of_a_channel_with_or_without_rows() -> None:
    clocks = of(Kind.CLOCK, ingested([GOOD]))
    assert sorted(e.shard for e in clocks) == [0, 1]
    assert {e.channel for e in clocks} == {"s0000/t/00003"}


def test_records_from_the_limit_of_a_bounded_channel_on_are_not_read() -> None:
    envelopes = ingested([GOOD, GOOD, GOOD], limits={"s0000/t/00003": 12})
    (rows,) = of(Kind.ROWS, envelopes)
    (total,) = unpack(rows.payload).to_pylist()
    assert 2 in total.values()


def test_the_same_records_give_the_same_envelopes_but_for_what_was_timed() -> None:
    first, second = ([e for e in ingested([GOOD, BAD, GOOD]) if e.kind != Kind.METRICS] for _ in range(2))
    assert first == second


CHANGES = PIPELINE.replace("'json'{options}", "'debezium-json'{options}")
UPDATE, TOMBSTONE = b'{"before": {"k": "a", "n": 1}, "after": {"k": "a", "n": 2}, "op": "u"}', None
INSERT = b'{"before": null, "after": {"k": "b", "n": 5}, "op": "c"}'
TIMED = """
CREATE TABLE t (k STRING, n BIGINT, ts AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'{options});
CREATE TABLE o (k STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT k FROM t WHERE n > 1;
"""
DOUBLES = PIPELINE.replace("n BIGINT", "n DOUBLE").replace("SUM(n)", "SUM(n / 3)")
OF_ALL = DOUBLES.replace("SELECT k,", "SELECT 'a',").replace("GROUP BY k", "")


@pytest.mark.parametrize(
    ("pipeline", "partitions"),
    [
        (PIPELINE, {0: [GOOD, GOOD], 1: [GOOD], 2: [GOOD] * 5}),
        (PIPELINE, {0: [GOOD, BAD], 1: [BAD], 2: [GOOD] * 3}),
        (CHANGES, {0: [INSERT, UPDATE], 1: [TOMBSTONE, UPDATE, TOMBSTONE], 2: [TOMBSTONE], 3: [UPDATE, BAD]}),
        (CHANGES, {0: [UPDATE], 1: [TOMBSTONE], 2: [INSERT]}),
        (DOUBLES, {n: [b'{"k": "a", "n": %r}' % (n + i / 7) for i in range(9)] for n in range(9)}),
        (OF_ALL, {n: [b'{"n": 0.1}'] * n for n in (5, 1, 2)}),
        (TIMED, {0: [b'{"n": 5}', b'{"n": 1}'], 1: [b'{"n": null}'], 2: [b'{"n": %d}' % 10**15], 3: [b'{"n": 7}']}),
    ],
)
def test_what_leaves_for_a_partition_does_not_depend_on_which_others_share_its_task(pipeline, partitions) -> None:
    program = compile_job(read(pipeline.format(options="")).jobs[0])
    source, topology = program.sources[0], Topology(program)

    def task(numbers: list[int]) -> list[Content]:
        blocks = [records(partitions[number], partition=number) for number in numbers]
        ingest = Ingest(topology, source, decoder(source.table, source.columns), Layout(2), Sql(), rows=3)
        envelopes = ingest.run([pa.concat_tables(blocks)], now=0)
        return [content for e in envelopes if e.kind != Kind.METRICS for content in contents(e)]

    alone = by_channel(content for number in partitions for content in task([number]))
    assert set(alone) <= {DIGESTS, *(f"s0000/t/{number:05d}" for number in partitions)}
    assert len(alone[DIGESTS]) == len(partitions)
    for order in (list(partitions), list(partitions)[::-1]):
        assert by_channel(task(order)) == alone


DIGESTS = "digests"
"""Under this name are the digests of all that was read, which do not tell of which channel they are."""

Content = tuple[str, int, int, int, int, Any]
"""Channel, shard, level, kind, address, and what is said."""


def contents(envelope: Envelope) -> Iterator[Content]:
    """What an envelope says: its rows, of a clock each partition, and each digest."""
    e = envelope
    match e.kind:
        case Kind.CLOCK:
            for clock in from_bytes(e.payload, e.watermark):
                channel = channel_name(e.address, clock.topic, clock.partition)
                yield channel, e.shard, e.level, e.kind, e.address, clock
        case Kind.OFFSETS:
            for at in range(0, len(e.payload), LENGTH):
                yield DIGESTS, e.shard, e.level, e.kind, e.address, e.payload[at : at + LENGTH]
        case Kind.SHARED_ROWS:
            for channel, rows in parted(unpack(e.payload)):
                yield channel, e.shard, e.level, Kind.ROWS, e.address, (rows.schema, rows.to_pylist())
        case Kind.ROWS | Kind.OUTPUT | Kind.DEAD_ROWS | Kind.DEAD_RECORDS:
            rows = unpack(e.payload)
            yield e.channel, e.shard, e.level, e.kind, e.address, (rows.schema, rows.to_pylist())
        case _:
            raise AssertionError(f"no task that reads sends {e.kind!r}")


def by_channel(content: Iterable[Content]) -> dict[str, list[Content]]:
    """What is said of each channel: to each receiver, and of a kind, in the order in which it was sent."""
    found = {
        channel: list(said) for channel, said in groupby(sorted(content, key=itemgetter(*range(5))), itemgetter(0))
    }
    return {channel: sorted(said, key=repr) if channel == DIGESTS else said for channel, said in found.items()}


def test_few_rows_of_many_partitions_leave_in_one_envelope_for_each_shard() -> None:
    program = compile_job(read(PIPELINE.format(options="")).jobs[0])
    source = program.sources[0]
    blocks = pa.concat_tables(
        records([b'{"k": "%d", "n": 1}' % n for n in range(9)], partition=partition) for partition in range(32)
    )
    ingest = Ingest(Topology(program), source, decoder(source.table, source.columns), Layout(2), Sql())
    envelopes = list(ingest.run([blocks], now=0))
    assert [e.shard for e in of(Kind.SHARED_ROWS, envelopes)] == [0, 1]
    assert sum(unpack(e.payload).num_rows for e in of(Kind.SHARED_ROWS, envelopes)) == 32 * 9
    assert len(envelopes) < 10


@pytest.mark.parametrize(("rows", "kind"), [(10, Kind.SHARED_ROWS), (FEW // 8, Kind.ROWS)])
def test_many_rows_of_a_partition_leave_in_an_envelope_of_their_own(rows: int, kind: Kind) -> None:
    program = compile_job(read(PIPELINE.format(options="")).jobs[0])
    source = program.sources[0]
    values = [b'{"k": "%d", "n": 1}' % n for n in range(rows)]
    blocks = pa.concat_tables(records(values, partition=partition) for partition in range(2))
    ingest = Ingest(Topology(program), source, decoder(source.table, source.columns), Layout(1), Sql())
    sent = [e.kind for e in ingest.run([blocks], now=0) if e.level != EGRESS and e.kind != Kind.CLOCK]
    assert set(sent) == {kind}


def test_a_shared_payload_is_bounded_however_wide_the_rows_are() -> None:
    program = compile_job(read(PIPELINE.format(options="")).jobs[0])
    source = program.sources[0]
    wide = b'{"k": "%s", "n": 1}' % (b"k" * (FEW - 1_000))
    blocks = [records([wide], partition=partition) for partition in range(200)]
    ingest = Ingest(Topology(program), source, decoder(source.table, source.columns), Layout(1), Sql())
    shared = of(Kind.SHARED_ROWS, list(ingest.run(blocks, now=0)))
    assert sum(unpack(e.payload).num_rows for e in shared) == 200
    assert len(shared) == 2
    assert all(len(e.payload) < PAYLOAD + FEW for e in shared)


TIMES = """
CREATE TABLE t (ms BIGINT, text STRING, ts AS {time}, WATERMARK FOR ts AS {watermark})
  WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE o (n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
INSERT INTO o SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND))
GROUP BY window_start, window_end;
"""
OF_NUMBER, OF_TEXT = "TO_TIMESTAMP_LTZ(ms, 3)", "TO_TIMESTAMP(text)"
NOT_A_TIME = 253_402_300_800_000
"""The first millisecond of the year 10000."""


def asserted(values: list[bytes], time: str, watermark: str) -> int:
    envelopes = ingested(values, pipeline=TIMES.format(time=time, watermark=watermark))
    return max(e.watermark for e in of(Kind.CLOCK, envelopes))


@pytest.mark.parametrize(
    ("time", "watermark", "values", "expected"),
    [
        (OF_NUMBER, "ts - INTERVAL '5' SECOND", [b'{"ms": 9000}', b'{"ms": 7000}'], 4000),
        (OF_NUMBER, "ts - INTERVAL '5' SECOND", [b'{"ms": null}', b'{"ms": 7000}'], 2000),
        (OF_NUMBER, "ts - INTERVAL '5' SECOND", [b'{"ms": 9000}', b'{"ms": %d}' % NOT_A_TIME], 4000),
        (OF_NUMBER, "ts + INTERVAL '1' MONTH", [b'{"ms": 86400000}'], 32 * 86_400_000),
        (OF_NUMBER, "ts - INTERVAL '1' MONTH", [b'{"ms": 7686000000}', b'{"ms": 7693200000}'], 5_094_000_000),
        (OF_NUMBER, "ts", [b'{"ms": %d}' % NOT_A_TIME], MIN_TIME),
        (OF_NUMBER, "CASE WHEN ms < 8000 THEN ts END", [b'{"ms": 9000}', b'{"ms": 7000}'], 7000),
        (OF_TEXT, "ts", [b'{"text": "1970-01-01 00:00:09"}', b'{"text": "1970-01-01 00:00:10"}'], 10_000),
    ],
)
def test_the_watermark_of_records_is_the_highest_that_one_of_them_asserts(
    time: str, watermark: str, values: list[bytes], expected: int
) -> None:
    assert asserted(values, time, watermark) == expected


DISCARDED = """
CREATE TABLE t (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'{options});
CREATE TABLE o (k STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k FROM t;
"""


@pytest.mark.parametrize(("prepare", "leave"), [(lambda program: program, 1), (discarding, 0)])
def test_rows_to_be_thrown_away_are_counted_where_they_are_made(prepare, leave) -> None:
    envelopes = ingested([GOOD, GOOD], pipeline=DISCARDED, prepare=prepare)
    assert len(of(Kind.OUTPUT, envelopes)) == leave
    (metrics,) = of(Kind.METRICS, envelopes)
    assert (b"output_changes_total" in metrics.payload) is not bool(leave)
