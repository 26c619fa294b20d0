"""Rows travel in payloads, and payloads in record batches, of a bounded size: whatever they are, a task holds few."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from operators.columns import weighted
from operators.time import MIN_TIME
from service.plan.lowering.lower import compile_job
from service.runtime import envelope as envelopes
from service.runtime.envelope import PAYLOAD, Envelope, Kind, blocks_of, from_batch, packed, unpack
from service.sql.pipeline import read
from tests.runtime.test_ingest import ingested, of
from tests.runtime.test_shard import Kept

ROW = 1000
TEXTS = pa.table({"n": range(100), "text": [str(n) * (ROW // len(str(n))) for n in range(100)]})
WIDE = 5 << 20
"""Bytes of a row of which two are more than a payload holds."""

COPY = """
CREATE TABLE t (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'{options});
CREATE TABLE o (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
INSERT INTO o SELECT k, n FROM t;
"""
LATEST = """
CREATE TABLE t (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'{options});
CREATE TABLE o (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT k, SUM(n) FROM t GROUP BY k;
"""


@pytest.mark.parametrize("largest", [1, 2 * ROW, 10 * ROW, 1 << 30])
@pytest.mark.parametrize("cut", [1, 7, 100])
def test_payloads_are_small_and_together_all_rows(cut: int, largest: int) -> None:
    tables = [TEXTS.slice(start, cut) for start in range(0, TEXTS.num_rows, cut)]
    found = [unpack(payload) for payload in packed(tables, largest)]
    assert pa.concat_tables(found).equals(TEXTS)
    assert all(table.nbytes <= largest or table.num_rows == 1 for table in found)


def test_small_tables_share_a_payload() -> None:
    tables = [TEXTS.slice(at, 1) for at in range(TEXTS.num_rows)]
    assert [unpack(payload).num_rows for payload in packed(tables, 30 * ROW)] == [29, 29, 29, 13]


@pytest.mark.parametrize(
    ("rows", "together"),
    [([9], [9]), ([9, 9], [18]), ([9, 95, 9], [9, 95, 9]), ([95, 9], [95, 9]), ([9, 9, 95, 4], [18, 95, 4])],
)
def test_a_small_table_with_others_is_counted_like_them(rows: list[int], together: list[int]) -> None:
    tables = [TEXTS.take(list(range(number))) for number in rows]
    assert [unpack(payload).num_rows for payload in packed(tables, 97 * ROW)] == together


@pytest.mark.parametrize(("pipeline", "kind"), [(COPY, Kind.OUTPUT), (LATEST, Kind.ROWS)])
def test_wide_rows_leave_a_task_in_several_payloads(pipeline: str, kind: Kind) -> None:
    values = [json.dumps({"k": f"{i}" * WIDE, "n": 1}).encode() for i in range(4)]
    found = of(kind, ingested(values, pipeline=pipeline, shards=1))
    assert sum(unpack(e.payload).num_rows for e in found) == 4
    assert max(len(e.payload) for e in found) < PAYLOAD


def test_wide_rows_leave_a_shard_in_several_payloads() -> None:
    program = compile_job(read(LATEST.format(options="")).jobs[0])
    schema = weighted(program.operators[0].kernel.output)
    rows = pa.table([[f"{i}" * WIDE for i in range(4)], [1] * 4, [7] * 4, [1] * 4], schema=schema)
    place = 0, 1, Kind.ROWS, 0, "s0000/t/00000"
    sent = [Envelope(*place, at, 1, MIN_TIME, False, payload) for at, payload in enumerate(packed([rows]))]
    found = of(Kind.OUTPUT, Kept(program).advance(sent))
    assert sum(unpack(e.payload).num_rows for e in found) == 4
    assert max(len(e.payload) for e in found) < PAYLOAD


@pytest.mark.parametrize(
    ("sizes", "together"),
    [
        ([10] * 9, [4, 4, 1]),
        ([60, 60, 60], [1, 1, 1]),
        ([60, 30, 20, 500, 1], [2, 1, 1, 1]),
        ([], []),
    ],
)
def test_record_batches_hold_few_envelopes_and_few_bytes(
    sizes: list[int], together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envelopes, "_TOGETHER", (4, 100))

    def sent() -> Iterator[Envelope]:
        for at, size in enumerate(sizes):
            yield Envelope(0, 1, Kind.ROWS, 0, "a", at, 1, MIN_TIME, False, b"x" * size)

    batches = [from_batch(batch) for batch in blocks_of(sent())]
    assert [len(batch) for batch in batches] == together
    assert [envelope for batch in batches for envelope in batch] == list(sent())
