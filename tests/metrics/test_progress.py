"""Spark's report of a batch, as the driver reads it."""

from __future__ import annotations

import json

import pytest

from service.observability.progress import Read, progress_of
from service.plan.lowering.lower import compile_job
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE a (k STRING) WITH ('connector' = 'kafka', 'topic' = 'one;two', 'format' = 'json');
CREATE TABLE made (k STRING) WITH ('connector' = 'datagen');
CREATE TABLE o (k STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k FROM a UNION ALL SELECT k FROM made;
"""
PROGRAM = compile_job(read(PIPELINE).jobs[0])
RECORDS = {"a": 30.0, "made": 10.0}


def report(**first):
    """A report in Spark's form."""
    kafka = {
        "numInputRows": 2,
        "startOffset": json.dumps({"one": {"0": 5}, "two": {"0": 0}}),
        "endOffset": json.dumps({"one": {"0": 25, "1": 7}, "two": {"0": 3}}),
        "latestOffset": {"one": {"0": 125, "1": 7}, "two": {"0": 4}},
        **first,
    }
    sources = {"a": kafka, "made": {"numInputRows": 1, "startOffset": 3, "endOffset": 4, "latestOffset": 4}}
    return {
        "batchId": 12,
        "timestamp": "2026-01-02T03:04:05.500Z",
        "durationMs": {"triggerExecution": 1500, "addBatch": 900, "walCommit": 40},
        "stateOperators": [{"commitTimeMs": 300}, {"commitTimeMs": 50}],
        "sources": [
            *(sources[s.table.name] for s in PROGRAM.sources),
            {"numInputRows": 8, "endOffset": {"now": 1, "ended": []}},
        ],
    }


def test_a_report_becomes_seconds_by_phase():
    progress = progress_of(PROGRAM, report(), RECORDS)
    assert (progress.batch, progress.seconds, progress.ended) == (12, 1.5, 1767323047.0)
    assert progress.phases == {"addBatch": 0.9, "walCommit": 0.04}
    assert progress.state_commit == 0.35


def test_rows_are_those_that_the_tasks_have_counted_of_each_source():
    rows = dict(zip((s.table.name for s in PROGRAM.sources), progress_of(PROGRAM, report(), RECORDS).rows, strict=True))
    assert rows == {"a": 30, "made": 10}


def test_only_tables_over_kafka_read_partitions():
    assert progress_of(PROGRAM, report(), RECORDS).reads == (
        Read("a", "one", 0, first=5, last=25, end=125),
        Read("a", "one", 1, first=7, last=7, end=7),
        Read("a", "two", 0, first=0, last=3, end=4),
    )


@pytest.mark.parametrize("missing", [None, "null"])
def test_a_first_batch_begins_nobody_knows_where(missing):
    reads = progress_of(PROGRAM, report(startOffset=missing), RECORDS).reads
    assert [(each.first, each.last) for each in reads] == [(25, 25), (7, 7), (3, 3)]
