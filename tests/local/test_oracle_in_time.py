"""Joins and set operations by event time against the same queries in batch: over rows out of order, of which some are
retracted, cut at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest

from operators.sql import Sql
from service.local.case import run_case
from service.local.changelog import applied
from service.sql.pipeline import load

BASE = datetime(2024, 1, 1)
STEP, DELAY = 500, 5_000
"""Milliseconds from row to row, and how far back in time a row may be: less than a watermark waits."""

TABLES = {
    "a": (
        "id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP(3)",
        "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'",
    ),
    "b": (
        "id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP(3)",
        "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'",
    ),
    "c": (
        "id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP(3)",
        "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json'",
    ),
    "p": (
        "k BIGINT, v BIGINT, ts TIMESTAMP(3) METADATA FROM 'timestamp', PRIMARY KEY (k) NOT ENFORCED",
        "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'",
    ),
}
"""`a` and `b` only insert, `c` takes rows back, `p` has versions."""

WINDOWS = """
CREATE VIEW {0}_tumble AS SELECT * FROM TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '4' SECOND));
CREATE VIEW {0}_hop AS SELECT * FROM TABLE(HOP(TABLE {0}, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '4' SECOND));
"""
BATCH_WINDOWS = """
CREATE TEMP VIEW {0}_hop AS SELECT *, window_start + INTERVAL '4' SECOND AS window_end FROM (
  SELECT *, UNNEST([time_bucket(INTERVAL '2' SECOND, ts) - INTERVAL (n) SECOND FOR n IN [0, 2]]) AS window_start
  FROM {0}
);
CREATE TEMP VIEW {0}_tumble AS SELECT * FROM {0}_hop WHERE window_start = time_bucket(INTERVAL '4' SECOND, ts);
"""

PAIR, ONE = "id BIGINT, other BIGINT", "id BIGINT"
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")

NEAR = {
    "closed": "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts + INTERVAL '4' SECOND",
    "open, and more": "a.k = b.k AND a.ts > b.ts - INTERVAL '3' SECOND AND a.ts < b.ts AND a.v <> b.v",
    "no equality": "b.ts >= a.ts - INTERVAL '900' MILLISECOND AND b.ts <= a.ts",
    "empty": "a.k = b.k AND b.ts BETWEEN a.ts + INTERVAL '2' SECOND AND a.ts + INTERVAL '1' SECOND",
}
INTERVAL = {
    **{
        f"{kind} by time, {how}": (PAIR, f"SELECT a.id, b.id FROM a {kind} b ON {near}")
        for kind in KINDS
        for how, near in NEAR.items()
    },
    **{
        f"{word} by time, {how}": (ONE, f"SELECT id FROM a WHERE {word} (SELECT * FROM b WHERE {near})")
        for word in ("EXISTS", "NOT EXISTS")
        for how, near in NEAR.items()
    },
    **{
        f"{kind} by time, a hot key": (
            PAIR,
            f"SELECT /*+ SKEW('a', 'k', 1) */ a.id, b.id FROM a {kind} b ON {NEAR['open, and more']}",
        )
        for kind in ("JOIN", "LEFT JOIN")
    },
    "LEFT JOIN by time, then EXISTS by time": (
        PAIR,
        f"SELECT a.id, b.id FROM a LEFT JOIN b ON {NEAR['closed']}"
        f" WHERE EXISTS (SELECT * FROM b AS c WHERE {NEAR['open, and more'].replace('b.', 'c.')})",
    ),
}

SAME = "x.window_start = y.window_start AND x.window_end = y.window_end"
WINDOW = {
    **{
        f"{kind} of {left} and {right}": (
            PAIR,
            f"SELECT x.id, y.id FROM {left} AS x {kind} {right} AS y ON x.k = y.k AND {SAME} AND x.v <> y.v",
        )
        for kind in KINDS
        for left, right in (("a_tumble", "b_tumble"), ("a_hop", "b_hop"), ("c_tumble", "b_tumble"))
    },
    **{
        f"{word} of {left} and {right}": (
            ONE,
            f"SELECT id FROM {left} AS x WHERE {word} (SELECT * FROM {right} AS y WHERE x.k = y.k AND {SAME})",
        )
        for word in ("EXISTS", "NOT EXISTS")
        for left, right in (("a_tumble", "b_tumble"), ("a_hop", "b_hop"), ("a_tumble", "c_tumble"))
    },
    "a hot key of windows": (
        PAIR,
        f"SELECT /*+ SKEW('x', 'k', 1) */ x.id, y.id FROM a_hop AS x LEFT JOIN b_hop AS y ON x.k = y.k AND {SAME}",
    ),
}

SHOWN = "SELECT window_start, window_end, k, v FROM"
SETS = {
    f"{left} {word} {right}": ("since TIMESTAMP(3), till TIMESTAMP(3), k BIGINT, v BIGINT", query)
    for word in ("INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "UNION", "UNION ALL")
    for left, right in (("a_tumble", "b_tumble"), ("a_hop", "b_hop"), ("c_hop", "b_hop"))
    for query in (f"{SHOWN} {left} {word} {SHOWN} {right}",)
} | {
    "DISTINCT of windows": ("since TIMESTAMP(3), k BIGINT", "SELECT DISTINCT window_start, k FROM a_hop"),
    "sets of sets of windows, grouped": (
        "since TIMESTAMP(3), n BIGINT",
        "SELECT window_start, COUNT(*) FROM ("
        f"({SHOWN} a_tumble EXCEPT {SHOWN} b_tumble) UNION ({SHOWN} b_tumble INTERSECT ALL {SHOWN} a_tumble)"
        ") AS t GROUP BY window_start, window_end",
    ),
}

KEYED = {
    "DISTINCT": "SELECT DISTINCT k, ts FROM a",
    "DISTINCT of retracted rows": "SELECT DISTINCT k, ts FROM c",
    "GROUP BY": "SELECT k, ts, COUNT(*) AS n FROM a GROUP BY k, ts HAVING COUNT(v) > 0",
    "GROUP BY of retracted rows": "SELECT ts, MAX(v) AS v FROM c GROUP BY ts",
    **{
        f"{word} with {right}, maybe empty": f"SELECT v, ts FROM a {word} SELECT v, ts FROM {right}"
        for word in ("UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        for right in ("b", "c")
    },
}
BY_TIME = {
    f"windows over {name}": (
        "since TIMESTAMP(3), n BIGINT",
        f"SELECT window_start, COUNT(*) FROM TUMBLE(DATA => ({query}), TIMECOL => DESCRIPTOR(ts),"
        " SIZE => INTERVAL '4' SECOND) GROUP BY window_start, window_end",
        f"SELECT time_bucket(INTERVAL '4' SECOND, ts) AS since, COUNT(*) FROM ({query}) GROUP BY since",
    )
    for name, query in KEYED.items()
} | {
    f"numbers over {name}": (
        "seconds BIGINT, n BIGINT",
        f"SELECT EXTRACT(SECOND FROM ts), COUNT(*) OVER (ORDER BY ts) FROM ({query}) AS t",
    )
    for name, query in KEYED.items()
}

HIGHEST = "ORDER BY v DESC NULLS LAST"
RANKS = {
    **{
        f"{bound} of {table}": (
            "id BIGINT, n BIGINT, r BIGINT, d BIGINT",
            f"SELECT * FROM (SELECT id, ROW_NUMBER() OVER w AS n, RANK() OVER w AS r, DENSE_RANK() OVER w AS d"
            f" FROM {table} WINDOW w AS (PARTITION BY k {HIGHEST})) AS t WHERE {bound}",
            # Rows that tie are numbered by their other columns, of which the first is their order of arrival, too.
            f"SELECT * FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k {HIGHEST}, id) AS n, RANK() OVER w AS r,"
            f" DENSE_RANK() OVER w AS d FROM {table} WINDOW w AS (PARTITION BY k {HIGHEST})) AS t WHERE {bound}",
        )
        for table in ("a", "c")
        for bound in ("n <= 3", "r <= 3", "d <= 1", "n BETWEEN 2 AND 4 AND r <= 9", "r BETWEEN 2 AND 20 AND d <= 2")
    },
    "ranks of groups in three orders": (
        "k BIGINT, v BIGINT, r BIGINT, n BIGINT, d BIGINT",
        "SELECT * FROM (SELECT k, v, RANK() OVER (ORDER BY COUNT(*) DESC) AS r,"
        " ROW_NUMBER() OVER (PARTITION BY v ORDER BY MAX(id) DESC) AS n, DENSE_RANK() OVER (ORDER BY MIN(ts)) AS d"
        " FROM c GROUP BY k, v) AS t WHERE r <= 6 AND n <= 3 AND d < 9",
    ),
    "QUALIFY by a key of the groups": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM c WHERE k > 0 GROUP BY k, v QUALIFY ROW_NUMBER() OVER (PARTITION BY v ORDER BY k) <= 2",
    ),
    "totals of the groups of all times so far": (
        "seconds BIGINT, n BIGINT",
        "SELECT EXTRACT(SECOND FROM ts), SUM(COUNT(*)) OVER (ORDER BY ts) FROM c GROUP BY ts",
    ),
    "QUALIFY with aggregates": (
        "k BIGINT, v BIGINT",
        "SELECT k, SUM(v) FROM c GROUP BY k QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2 AND COUNT(v) > 1",
    ),
    **{
        f"ranks in windows of {table}": (
            "since TIMESTAMP(3), id BIGINT, n BIGINT",
            f"SELECT window_start, id, ROW_NUMBER() OVER (PARTITION BY window_start, window_end {HIGHEST}, id) AS n"
            f" FROM {table} QUALIFY n <= 3",
        )
        for table in ("a_tumble", "c_tumble", "c_hop")
    },
}


class Versioned(NamedTuple):
    """A temporal join: its kind, its left table, what it asks of a version beside its key, a hint."""

    kind: str
    left: str
    rest: str = ""
    hint: str = ""

    @property
    def query(self) -> str:
        on = f"x.k = p.k{self.rest}"
        return f"SELECT {self.hint} x.id, p.v FROM {self.left} AS x {self.kind} p FOR SYSTEM_TIME AS OF x.ts ON {on}"

    @property
    def in_batch(self) -> str:
        """The version of a row's time is looked for first, and asked then."""
        met = f"SELECT x.*, p.v AS met FROM {self.left} AS x ASOF LEFT JOIN p ON x.k = p.k AND x.ts >= p.ts"
        matches = f"met IS NOT NULL{self.rest.replace('p.v', 'met')}"
        if self.kind == "JOIN":
            return f"SELECT id, met FROM ({met}) AS x WHERE {matches}"
        return f"SELECT id, CASE WHEN {matches} THEN met END FROM ({met}) AS x"


TEMPORAL = {
    f"{each.kind} with the version of {each.left}{each.rest}{each.hint}": (PAIR, each.query, each.in_batch)
    for kind in ("JOIN", "LEFT JOIN")
    for left in ("a", "c")
    for each in (
        Versioned(kind, left),
        Versioned(kind, left, " AND p.v > x.v"),
        Versioned(kind, left, hint="/*+ SKEW('x', 'k', 1) */"),
    )
}

QUERIES: dict[str, tuple[str, ...]] = {**INTERVAL, **WINDOW, **SETS, **TEMPORAL, **BY_TIME, **RANKS}

ROWS = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
VERSIONS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])

Row = tuple[object, ...]
Change = tuple[str, Row]


def out_of_order(number: int, rng: random.Random) -> datetime:
    """The time of a row: its place in the stream, or some time before."""
    return BASE + timedelta(milliseconds=number * STEP - rng.randrange(0, DELAY, 250) * rng.choice([0, 1]))


def rows(rng: random.Random, *, retracted: bool) -> list[Change]:
    """Rows with few keys, one of them hot, and NULLs; a row is retracted before the watermark reaches it."""
    found: list[Change] = []
    there: list[tuple[datetime, Row]] = []
    for number in range(60):
        there = [each for each in there if each[0] > BASE + timedelta(milliseconds=number * STEP - DELAY)]
        if retracted and there and rng.random() < 0.35:
            found.append(("-D", there.pop(rng.randrange(len(there)))[1]))
            continue
        time = out_of_order(number, rng)
        row = (number, rng.choice([1, 1, 1, 1, 2, 3, None]), rng.choice([1, 2, None]), time)
        there.append((time, row))
        found.append(("+I", row))
    return found


def versions(rng: random.Random) -> list[Change]:
    """Versions of the rows of a few keys, and their ends."""
    found: list[Change] = []
    for number in range(0, 60, 2):
        kind = rng.choice(["+U", "+U", "+U", "-D"])
        found.append((kind, (rng.choice([1, 2, 4]), None if kind == "-D" else number % 5, out_of_order(number, rng))))
    return found


def text(value: object) -> str:
    return "NULL" if value is None else str(value)


def write(path: Path, changes: Sequence[Change], rng: random.Random, *, kinds: bool) -> None:
    """Write an input file of a few batches, cut at random."""
    cuts = sorted(rng.randrange(len(changes)) for _ in range(5))
    names = "id | k | v | ts" if len(changes[0][1]) == 4 else "k | v | ts"
    lines = [f"{'|  ' if kinds else ''}| {names} |", f"{'|--' if kinds else ''}|{'--|' * len(changes[0][1])}"]
    for number, (kind, row) in enumerate(changes):
        lines += ["---"] * cuts.count(number)
        lines.append(f"{f'| {kind} ' if kinds else ''}| {' | '.join(map(text, row))} |")
    path.write_text("\n".join(lines))


def fill(batch: duckdb.DuckDBPyConnection, a: list[Change], b: list[Change], c: list[Change], p: list[Change]) -> None:
    """Create the tables of the rows that are there in the end, of versions the last of those with one time."""
    for name, changes in (("a", a), ("b", b), ("c", c)):
        left = Counter[Row]()
        for kind, row in changes:
            left[row] += 1 if kind == "+I" else -1
        create(batch, name, ROWS, left.elements())
        batch.execute(BATCH_WINDOWS.format(name))
    create(batch, "p", VERSIONS, {(row[0], row[2]): row for _, row in p}.values())


def create(batch: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, rows: Iterable[Row]) -> None:
    """Create a table of rows."""
    columns = zip(*rows, strict=True)
    batch.register("given", pa.table(list(columns), schema=schema))
    batch.execute(f"CREATE TEMP TABLE {name} AS FROM given")


@pytest.fixture(scope="module")
def sql() -> Sql:
    return Sql()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_what_the_changes_add_up_to_is_the_answer_in_batch(
    name: str, seed: int, tmp_path: Path, sql: Sql, batch: duckdb.DuckDBPyConnection
):
    columns, query, *apart = QUERIES[name]
    rng = random.Random(f"{name} {seed}")
    given = {
        "a": rows(rng, retracted=False),
        "b": rows(rng, retracted=False),
        "c": rows(rng, retracted=True),
        "p": versions(rng),
    }
    source = (
        "CREATE TABLE {0} ({1}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ({2}, 'topic' = '{0}',"
        " 'scan.bounded.mode' = 'latest-offset');\n"
    )
    pipeline = "".join(source.format(table, *TABLES[table]) for table in given)
    pipeline += "".join(WINDOWS.format(table) for table in "abc")
    pipeline += f"CREATE TABLE answer ({columns}) WITH ('connector' = 'kafka', 'topic' = 'answer',"
    pipeline += f" 'format' = 'changelog-json');\nINSERT INTO answer {query};"
    (tmp_path / "pipeline.sql").write_text(pipeline)
    for table, changes in given.items():
        write(tmp_path / f"{table}.rows", changes, rng, kinds=table in "cp")
    outcome = run_case(tmp_path, load(tmp_path / "pipeline.sql", {}).jobs, sql, shards=3)
    assert not any(outcome.dead)
    assert not any(outcome.late)
    came = Counter(applied(outcome.changes["answer"], None))
    fill(batch, **given)
    answer = batch.execute(apart[0] if apart else query).fetchall()
    assert came == Counter(tuple(map(text, row)) for row in answer)
    assert came or "empty" in name
