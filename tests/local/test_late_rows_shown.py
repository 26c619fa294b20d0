"""Late rows may be shown, or no longer, while there is state: a window over a union goes on with what it keeps."""

from __future__ import annotations

import json
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
WINDOW = """SELECT n, COUNT(*) FROM TABLE(TUMBLE(TABLE both_tables, DESCRIPTOR(ts), INTERVAL '{}' SECOND))
GROUP BY n, window_start, window_end"""
PIPELINE = f"""
CREATE TABLE a (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({KAFKA}, 'topic' = 'a');
CREATE TABLE b (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({KAFKA}, 'topic' = 'b');
CREATE TABLE short (n BIGINT, c BIGINT) WITH ({KAFKA}, 'topic' = 'short');
CREATE TABLE long (n BIGINT, c BIGINT) WITH ({KAFKA}, 'topic' = 'long');
CREATE VIEW both_tables AS SELECT n, ts FROM a UNION ALL SELECT n, ts FROM b;
EXECUTE STATEMENT SET BEGIN
INSERT INTO short {WINDOW.format(10)};
INSERT INTO long {WINDOW.format(30)};
END;
"""


def at(seconds: int, n: int) -> str:
    return json.dumps({"n": n, "ts": f"2024-01-01 00:00:{seconds:02d}"})


class Job:
    """The job, which may be started again with late rows shown or not."""

    def __init__(self, late_rows: bool) -> None:
        self._sql, self._batch = Sql(), 0
        self._runner: LocalRunner | None = None
        self.start(late_rows)

    def start(self, late_rows: bool) -> None:
        """Start it on the state and the clocks that it has, if any."""
        before = self._runner
        self._program = program = compile_job(read(PIPELINE).jobs[0], late_rows=late_rows)
        decoders = {s.id: decoder(s.table, s.columns) for s in program.sources}
        self._runner = LocalRunner(program, decoders, 2, self._sql)
        if before is not None:
            for number, level in self._runner._levels.items():
                level._stores, level._clocks = before._levels[number]._stores, before._levels[number]._clocks
            self._runner._shards = before._shards

    def batch(self, *values: str) -> tuple[Counter[tuple[str, int, int]], int, int]:
        """What a batch with these records in each table answers: table, number and count; and how many of its rows are
        late, as they are counted and as they are shown."""
        assert self._runner is not None
        self._batch += 1
        sources = self._program.sources
        offsets = pa.array([100 * self._batch + i for i in range(len(values))], pa.int64())
        given = {s.id: [records(s.table.name, list(values)).set_column(3, "offset", offsets)] for s in sources}
        tick = Tick({s.id: (channel_name(s.id, s.table.name, 0),) for s in sources}, ())
        found = self._runner.batch(given, tick, 1_000 * self._batch)
        names = {o.id: o.table.name for o in self._program.outputs}
        rows = [(names[id_], *row[:2]) for id_, t in found.outputs.items() for row in zip(*t.columns, strict=True)]
        counted = sum(n for name, n in found.metrics.counts.items() if name.startswith("late_records_total"))
        shown = sum(table.num_rows for tables in found.late.values() for table in tables)
        return Counter((name, n.as_py(), c.as_py()) for name, n, c in rows), int(counted), shown


@pytest.mark.parametrize("shown", [False, True])
def test_windows_over_a_union_go_on_when_late_rows_are_shown_or_no_longer(shown: bool) -> None:
    job = Job(late_rows=shown)
    assert job.batch(at(1, 7), at(12, 8)) == ({("short", 7, 2): 1}, 0, 0)
    job.start(late_rows=not shown)
    assert job.batch(at(13, 8), at(2, 7), at(24, 9)) == ({("short", 8, 4): 1}, 2, 0 if shown else 2)
    assert job.batch(at(3, 7), at(25, 9)) == ({}, 2, 0 if shown else 2)
    job.start(late_rows=shown)
    answer, counted, _ = job.batch(at(31, 9))
    assert (answer, counted) == ({("short", 9, 4): 1, ("long", 7, 6): 1, ("long", 8, 4): 1, ("long", 9, 4): 1}, 0)
