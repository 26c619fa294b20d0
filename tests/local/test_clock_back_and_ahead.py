"""Processing time goes ahead by hours and back between batches: each row counts once, and nothing stops."""

from __future__ import annotations

import itertools
from collections import Counter

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.registry import decoder
from service.local.runner import LocalRunner
from service.plan.lowering.lower import compile_job
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read
from tests.local.test_conditions import records

KAFKA = "'connector' = 'kafka', 'format' = 'json', 'properties.group.id' = 'g'"
TABLES = f"""
CREATE TABLE a (k INT, v INT, p AS PROCTIME()) WITH ({KAFKA}, 'topic' = 'a');
CREATE TABLE o (k INT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'changelog-json');
"""
WINDOW = "TABLE({}(TABLE a, DESCRIPTOR(p), {})) GROUP BY k, window_start, window_end"
QUERIES = {
    "tumble": "SELECT k, COUNT(*) FROM " + WINDOW.format("TUMBLE", "INTERVAL '10' SECOND"),
    "session": "SELECT k, COUNT(*) FROM TABLE(SESSION(TABLE a PARTITION BY k, DESCRIPTOR(p), INTERVAL '10' SECOND))"
    " GROUP BY k, window_start, window_end",
    "group window": "SELECT k, COUNT(*) FROM a GROUP BY k, TUMBLE(p, INTERVAL '10' SECOND)",
    "count window": "SELECT k, COUNT(*) FROM a GROUP BY k, COUNTWINDOW(2) OVER (PARTITION BY k)",
    "group by": "SELECT k, COUNT(*) FROM a GROUP BY k",
    "over": "SELECT k, CAST(1 AS BIGINT) FROM (SELECT k, COUNT(*) OVER (PARTITION BY k ORDER BY p"
    " RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS n FROM a)",
}
START = 1_700_000_000_000
SECOND, HOUR = 1_000, 3_600_000
JUMPS = {
    "back by seconds": (0, 4, -3, 2, 9),
    "back by an hour": (0, 4, -3_600, 5, 3_700),
    "ahead by an hour": (0, 4, 3_600, 5, 9),
    "ahead and back": (0, 3_600, -3_600, 4, 3_600),
}
"""Seconds that pass before each batch, as the clock has them."""


@pytest.mark.parametrize("jumps", JUMPS)
@pytest.mark.parametrize("query", QUERIES)
def test_each_row_counts_once_whatever_the_clock_says(query: str, jumps: str):
    program = compile_job(read(f"{TABLES}INSERT INTO o {QUERIES[query]};").jobs[0])
    (source,) = program.sources
    runner = LocalRunner(program, {source.id: decoder(source.table, source.columns)}, 2, Sql())
    tick = Tick({source.id: (channel_name(source.id, "a", 0),)}, ())
    counted: Counter[int] = Counter()
    times = [START + SECOND * passed for passed in itertools.accumulate(JUMPS[jumps])]
    # Time goes on behind the last jump, with batches that have no rows.
    for batch, now in enumerate([*times, *(times[-1] + HOUR * later for later in range(1, 4))]):
        values = [f'{{"k": {k}, "v": {batch}}}' for k in (1, 1, 2, 2)] if batch < len(times) else []
        found = runner.batch({source.id: [_at(records("a", values), batch)]}, tick, now)
        for table in found.outputs.values():
            for k, n, weight in zip(*(table[name].to_pylist() for name in ("c0", "c1", "_weight")), strict=True):
                counted[k] += n * weight
        assert not found.dead
        assert not found.late
    assert counted == {1: 2 * len(times), 2: 2 * len(times)}


def _at(rows: pa.Table, batch: int) -> pa.Table:
    """The records behind those of the batches before."""
    offsets = pa.array([100 * batch + i for i in range(rows.num_rows)], pa.int64())
    return rows.set_column(rows.column_names.index("offset"), "offset", offsets)
