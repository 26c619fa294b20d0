"""Whole queries against the same query in batch: SQL, plan, levels and kernels together, over inputs that also take
rows back, cut at random."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from operators.sql import Sql
from service.local.case import run_case
from service.local.changelog import applied
from service.sql.pipeline import load

Row = tuple[object, ...]

TABLES = """
CREATE TABLE a (k BIGINT, g STRING, v BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'a', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json');
CREATE TABLE b (k BIGINT, h STRING, w BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'b', 'scan.startup.mode' = 'earliest-offset', 'format' = 'changelog-json');
"""

QUERIES: dict[str, tuple[str, ...]] = {
    "group": ("g STRING, s BIGINT, n BIGINT", "SELECT g, SUM(v), COUNT(*) FROM a GROUP BY g"),
    "group of groups": (
        "g STRING, m BIGINT, n BIGINT",
        "SELECT g, MAX(s), COUNT(*) FROM (SELECT g, k, SUM(v) AS s FROM a GROUP BY g, k) AS t GROUP BY g",
    ),
    "distinct, filter": (
        "h STRING, n BIGINT, f BIGINT",
        "SELECT h, COUNT(DISTINCT k), COUNT(*) FILTER (WHERE w > 3) FROM b GROUP BY h HAVING COUNT(*) > 1",
    ),
    "select distinct": ("g STRING", "SELECT DISTINCT g FROM a WHERE v > 2"),
    "inner": ("g STRING, h STRING, v BIGINT", "SELECT a.g, b.h, a.v FROM a JOIN b ON a.k = b.k"),
    "inner, residual": ("v BIGINT, w BIGINT", "SELECT a.v, b.w FROM a JOIN b ON a.k = b.k AND a.v < b.w WHERE a.v > 0"),
    "left": ("g STRING, h STRING", "SELECT a.g, b.h FROM a LEFT JOIN b ON a.k = b.k AND b.w > 3"),
    "right": ("g STRING, h STRING", "SELECT a.g, b.h FROM a RIGHT JOIN b ON a.k = b.k"),
    "full": ("g STRING, h STRING", "SELECT a.g, b.h FROM a FULL JOIN b ON a.k = b.k"),
    "self": ("x BIGINT, y BIGINT", "SELECT p.v, q.v FROM a AS p JOIN a AS q ON p.k = q.k AND p.g = q.g"),
    "semi": ("g STRING, v BIGINT", "SELECT g, v FROM a WHERE k IN (SELECT k FROM b WHERE w > 4)"),
    "anti": ("g STRING, v BIGINT", "SELECT g, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    "join, group": (
        "h STRING, s BIGINT, n BIGINT",
        "SELECT b.h, SUM(a.v), COUNT(DISTINCT a.g) FROM a JOIN b ON a.k = b.k GROUP BY b.h HAVING SUM(a.v) > 5",
    ),
    "join, group by its key": (
        "k BIGINT, s BIGINT",
        "SELECT a.k, SUM(a.v * b.w) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    ),
    "left, group by the padded key": (
        "k BIGINT, n BIGINT",
        "SELECT b.k, COUNT(*) FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.k",
    ),
    "group, join": (
        "g STRING, n BIGINT",
        "SELECT a.g, c.n FROM a LEFT JOIN (SELECT k, COUNT(*) AS n FROM b GROUP BY k) AS c ON a.k = c.k",
    ),
    "two groups, join": (
        "k BIGINT, s BIGINT, t BIGINT",
        "SELECT x.k, x.s, y.t FROM (SELECT k, SUM(v) AS s FROM a GROUP BY k) AS x"
        " JOIN (SELECT k, SUM(w) AS t FROM b GROUP BY k) AS y ON x.k = y.k",
    ),
    "subset of the key": (
        "k BIGINT, g STRING, n BIGINT",
        "SELECT a.k, a.g, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k, a.g",
    ),
    "union all": (
        "k BIGINT, s BIGINT",
        "SELECT k, SUM(v) FROM (SELECT k, v FROM a UNION ALL SELECT k, w FROM b) AS t GROUP BY k",
    ),
    "union all of a group and a table": (
        "k BIGINT, s BIGINT",
        "SELECT k, MIN(v) FROM (SELECT k, SUM(v) AS v FROM a GROUP BY k UNION ALL SELECT k, w FROM b) AS t GROUP BY k",
    ),
    "natural full": ("k BIGINT, g STRING, h STRING", "SELECT k, g, h FROM a NATURAL FULL JOIN b"),
    "full, using, and again": (
        "k BIGINT, g STRING, h STRING, v BIGINT",
        "SELECT k, a.g, b.h, c.v FROM a FULL JOIN b USING (k)"
        " FULL JOIN (SELECT k, v FROM a WHERE v > 1) AS c USING (k)",
    ),
    "right, using": ("k BIGINT, h STRING, g STRING", "SELECT k, h, g FROM a RIGHT JOIN b USING (k)"),
    "join in parentheses": (
        "v BIGINT, w BIGINT, x STRING",
        "SELECT a.v, b.w, c.g FROM a LEFT JOIN (b JOIN a AS c ON b.h = 'p' AND b.w = c.v) ON a.k = b.k",
    ),
    "two that only the third compares": (
        "v BIGINT, w BIGINT, x BIGINT",
        "SELECT a.v, b.w, c.v FROM a, b, a AS c WHERE a.k = c.k AND b.k = c.k AND a.v < b.w AND c.g = 'x'",
    ),
    "two that only the third compares, all columns": (
        "k BIGINT, g STRING, v BIGINT, n BIGINT, h STRING, w BIGINT",
        "SELECT * FROM a, (SELECT k AS n FROM b WHERE w > 3) AS c, (SELECT h, w FROM b) AS d"
        " WHERE a.v = d.w AND c.n < d.w AND c.n + 2 = d.w",
    ),
    "full, no equality": ("v BIGINT, w BIGINT", "SELECT a.v, b.w FROM a FULL JOIN b ON a.v < b.w AND a.g = 'x'"),
    "in, in ON": (
        "v BIGINT, w BIGINT",
        "SELECT a.v, b.w FROM a JOIN b ON a.k = b.k AND a.v IN (SELECT w FROM b WHERE k > 1)",
    ),
    "not exists, in ON of the first of two": (
        "v BIGINT, w BIGINT, x BIGINT",
        "SELECT a.v, b.w, c.v FROM a JOIN b ON a.k = b.k"
        " AND NOT EXISTS (SELECT 1 FROM b AS d WHERE d.k = a.k AND d.w = b.w + 1) LEFT JOIN a AS c ON c.k = b.w",
    ),
    "a query or a comparison, in ON": (
        "v BIGINT, w BIGINT",
        "SELECT a.v, b.w FROM a JOIN b ON a.k = b.k AND (a.v < b.w OR b.w IN (SELECT v FROM a))",
    ),
    "a value of a query, in ON": (
        "v BIGINT, w BIGINT",
        "SELECT a.v, b.w FROM a JOIN b ON a.k = b.k AND a.v < (SELECT MAX(w) FROM b)",
    ),
    "in, or": ("g STRING, v BIGINT", "SELECT g, v FROM a WHERE v > 5 OR k IN (SELECT k FROM b WHERE w > 3)"),
    "not in, or": ("g STRING, v BIGINT", "SELECT g, v FROM a WHERE v > 5 OR k NOT IN (SELECT k FROM b WHERE w > 5)"),
    "not in": ("g STRING, v BIGINT", "SELECT g, v FROM a WHERE k NOT IN (SELECT k FROM b WHERE w > 5 AND h = 'p')"),
    "not in, twice": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE k NOT IN (SELECT k FROM b WHERE w = 1) AND v NOT IN (SELECT k FROM b WHERE h = 'q')",
    ),
    "not in, a tie": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.w = a.v)",
    ),
    "not in as a value": ("v BIGINT, i BOOLEAN", "SELECT v, k NOT IN (SELECT k FROM b WHERE w > 5) FROM a"),
    "in as a value": ("k BIGINT, i BOOLEAN", "SELECT k, k IN (SELECT k FROM b WHERE h = 'p') FROM a"),
    "exists as a value": (
        "k BIGINT, n BIGINT",
        "SELECT k, CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w < a.v) THEN v ELSE 0 END FROM a",
    ),
    "not exists, an inequality": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.k = a.k AND b.w < a.v)",
    ),
    "lateral, distinct": (
        "g STRING, h STRING",
        "SELECT g, t.h FROM a, LATERAL (SELECT DISTINCT h FROM b WHERE b.k = a.k) AS t",
    ),
    "lateral, distinct, what is read of the outer row": (
        "v BIGINT, x BIGINT",
        "SELECT v, t.x FROM a LEFT JOIN LATERAL (SELECT DISTINCT b.w + a.v AS x FROM b WHERE b.k = a.k) AS t ON TRUE",
    ),
    "lateral, distinct, a constant": (
        "g STRING, x INT",
        "SELECT g, t.x FROM a, LATERAL (SELECT DISTINCT 1 AS x FROM b WHERE b.k = a.k) AS t",
    ),
    "lateral, distinct, of its own": (
        "g STRING, h STRING",
        "SELECT g, t.h FROM a, LATERAL (SELECT DISTINCT h FROM b WHERE w > 3) AS t",
    ),
    "in, distinct, tied": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE v IN (SELECT DISTINCT w FROM b WHERE k = a.k)",
    ),
    "in, distinct, limit": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE v IN (SELECT DISTINCT w FROM b WHERE h = 'p' ORDER BY w DESC LIMIT 2)",
    ),
    "in, distinct, limit, tied": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE v IN (SELECT DISTINCT w FROM b WHERE b.k = a.k ORDER BY w DESC LIMIT 2)",
    ),
    "lateral, distinct, limit, of what is read of the outer row": (
        "v BIGINT, x BIGINT",
        "SELECT v, t.x FROM a, LATERAL (SELECT DISTINCT b.w + a.v AS x FROM b WHERE b.k = a.k ORDER BY x LIMIT 2) AS t",
    ),
    "lateral, the first groups": (
        "g STRING, h STRING, n BIGINT",
        "SELECT g, t.h, t.n FROM a, LATERAL (SELECT h, COUNT(*) AS n FROM b WHERE b.k = a.k GROUP BY h"
        " ORDER BY n DESC, 1 NULLS FIRST LIMIT 1) AS t",
    ),
    "a value of the first group, by what is not selected": (
        "v BIGINT, x STRING",
        "SELECT v, (SELECT h FROM b WHERE b.k = a.k GROUP BY h ORDER BY SUM(w) DESC, h NULLS FIRST LIMIT 1) FROM a",
    ),
    "a value, in the order of a number": (
        "v BIGINT, x BIGINT",
        "SELECT v, (SELECT w FROM b WHERE b.k = a.k ORDER BY 1 DESC LIMIT 1) FROM a",
    ),
    "a value, in the order of a name that the outer query has, too": (
        "g STRING, x BIGINT",
        "SELECT g, (SELECT -w AS v FROM b WHERE b.k = a.k ORDER BY v LIMIT 1) FROM a",
    ),
    "a distinct value": ("v BIGINT, x BIGINT", "SELECT v, (SELECT DISTINCT w FROM b WHERE w = 3) FROM a"),
    "a distinct value, tied": (
        "v BIGINT, x BIGINT",
        "SELECT v, (SELECT DISTINCT b.k FROM b WHERE b.k = a.k) FROM a",
    ),
    "lateral, a join": (
        "g STRING, h STRING, x BIGINT",
        "SELECT g, t.h, t.x FROM a, LATERAL"
        " (SELECT b.h, c.v AS x FROM b JOIN a AS c ON b.k = c.k WHERE b.w > a.v AND c.g = a.g) AS t",
    ),
    "lateral, an aggregate of any rows, after another": (
        "v BIGINT, s BIGINT, n BIGINT",
        "SELECT a.v, t.s, u.n FROM a, LATERAL (SELECT SUM(w) AS s FROM b WHERE b.k = a.k) AS t"
        " LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM b WHERE b.w < t.s) AS u ON TRUE",
    ),
    "lateral, the last two of what is smaller": (
        "k BIGINT, x BIGINT",
        "SELECT a.k, t.x FROM a LEFT JOIN LATERAL"
        " (SELECT b.w * 10 AS x FROM b WHERE b.w <= a.v ORDER BY b.w DESC, b.k, b.h LIMIT 2) AS t ON TRUE",
    ),
    "lateral, joined on": (
        "k BIGINT, h STRING",
        "SELECT c.k, t.h FROM a AS c JOIN b AS d ON c.k = d.k,"
        " LATERAL (SELECT h FROM b WHERE b.w = c.v AND b.k <> d.w) AS t",
    ),
    "in, tied by an inequality": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE v IN (SELECT w FROM b WHERE b.k > a.k)",
    ),
    "in, tied": ("g STRING, v BIGINT", "SELECT g, v FROM a WHERE v IN (SELECT w FROM b WHERE k = a.k)"),
    "exists in an aggregate": (
        "g STRING, n BIGINT",
        "SELECT g, SUM(CASE WHEN EXISTS (SELECT 1 FROM b WHERE b.k = a.k) THEN 1 ELSE 0 END) FROM a GROUP BY g",
    ),
    "all": ("v BIGINT", "SELECT v FROM a WHERE v >= ALL (SELECT w FROM b WHERE b.k = a.k)"),
    "all as a value": ("v BIGINT, x BOOLEAN", "SELECT v, v > ALL (SELECT k FROM b) FROM a"),
    "a row, in": ("k BIGINT, v BIGINT", "SELECT k, v FROM a WHERE ROW(k, v) IN (SELECT k, w FROM b)"),
    "a row, not in": ("k BIGINT, v BIGINT", "SELECT k, v FROM a WHERE (k, v) NOT IN (SELECT k, w FROM b WHERE w > 3)"),
    "a row, unlike any": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM a WHERE (k, v) <> ANY (SELECT k, w FROM b WHERE h = 'p')",
        "SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE h = 'p' AND (b.k <> a.k OR b.w <> a.v))",
    ),
    "a row, like all": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM a WHERE (k, v) = ALL (SELECT k, w FROM b WHERE b.h = a.g OR w > 5)",
        "SELECT k, v FROM a WHERE NOT EXISTS"
        " (SELECT 1 FROM b WHERE (b.h = a.g OR w > 5) AND (b.k <> a.k OR b.w <> a.v) IS NOT FALSE)",
    ),
    "a row, like all, as a value": (
        "v BIGINT, x BOOLEAN",
        "SELECT v, (k, v) = ALL (SELECT k, w FROM b WHERE w > 5) FROM a",
        "SELECT v, (SELECT CASE WHEN bool_or(b.k <> a.k OR b.w <> a.v) THEN false"
        " WHEN bool_or((b.k <> a.k OR b.w <> a.v) IS NULL) THEN NULL ELSE true END FROM b WHERE w > 5) FROM a",
    ),
    "any": ("v BIGINT", "SELECT v FROM a WHERE v < ANY (SELECT w FROM b WHERE h = 'q')"),
    "any as a value": ("v BIGINT, x BOOLEAN", "SELECT v, k <> ANY (SELECT k FROM b) FROM a"),
    "the greatest of all": ("v BIGINT", "SELECT v FROM a WHERE v = (SELECT MAX(w) FROM b)"),
    "a total as a value": ("g STRING, s BIGINT", "SELECT g, (SELECT SUM(w) FROM b) FROM a"),
    "a total of each": ("k BIGINT, s BIGINT", "SELECT k, (SELECT SUM(w) FROM b WHERE b.k = a.k) FROM a"),
    "a number of each": (
        "k BIGINT, n BIGINT",
        "SELECT k, (SELECT COUNT(*) + 1 FROM b WHERE b.k = a.k AND w > 1) FROM a",
    ),
    "a number of each, an inequality": (
        "v BIGINT, n BIGINT",
        "SELECT v, (SELECT COUNT(*) FROM b WHERE w < a.v) FROM a",
    ),
    "an average of its group": (
        "k BIGINT, v BIGINT",
        "SELECT k, v FROM a WHERE v * 2 > (SELECT MIN(v) + MAX(v) FROM a AS x WHERE x.g = a.g)",
    ),
    "the largest of each": (
        "k BIGINT, w BIGINT",
        "SELECT k, (SELECT w FROM b WHERE b.k = a.k ORDER BY w DESC LIMIT 1) FROM a",
    ),
    "a value in HAVING": (
        "g STRING, s BIGINT",
        "SELECT g, SUM(v) FROM a GROUP BY g HAVING SUM(v) > (SELECT MIN(w) FROM b)",
    ),
    "a value of each group": (
        "k BIGINT, s BIGINT, t BIGINT",
        "SELECT a.k, SUM(v), (SELECT SUM(w) FROM b WHERE b.k = a.k) FROM a GROUP BY a.k",
    ),
    "a value of a key": (
        "v BIGINT, s BIGINT",
        "SELECT v, (SELECT s FROM (SELECT k, SUM(w) AS s FROM b GROUP BY k) AS t WHERE t.k = a.k) FROM a",
    ),
    "a total of each group of each": (
        "k BIGINT, s BIGINT",
        "SELECT k, (SELECT SUM(w) FROM b WHERE b.k = a.k AND b.w < a.v GROUP BY b.k) FROM a",
    ),
    "a total of each, HAVING": (
        "k BIGINT, s BIGINT",
        "SELECT k, (SELECT SUM(w) FROM b WHERE b.k = a.k GROUP BY b.k HAVING COUNT(*) > 1) FROM a",
    ),
    "a total of each with outer columns": (
        "k BIGINT, s BIGINT",
        "SELECT k, (SELECT SUM(b.w * a.v) + COUNT(*) FROM b WHERE b.k = a.k) FROM a",
    ),
    "a number of each and an outer column": (
        "v BIGINT, n BIGINT",
        "SELECT v, (SELECT COUNT(*) + a.v FROM b WHERE b.k = a.k) FROM a",
    ),
    "a number of all and an outer column": (
        "v BIGINT, n BIGINT",
        "SELECT v, (SELECT MAX(b.w) * a.v FROM b) FROM a WHERE EXISTS (SELECT 1 FROM b)",
    ),
    "exists a group of each": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE EXISTS (SELECT b.h FROM b WHERE b.k = a.k GROUP BY b.h HAVING SUM(b.w) > a.v)",
    ),
    "exists of all rows of each": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k HAVING COUNT(*) > 1)",
    ),
    "not exists a group in a query inside": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE NOT EXISTS"
        " (SELECT 1 FROM (SELECT k, SUM(w) AS s FROM b GROUP BY k) AS t WHERE t.k = a.k AND t.s > a.v)",
    ),
    "in a number of each": (
        "v BIGINT",
        "SELECT v FROM a WHERE v - 1 NOT IN (SELECT COUNT(*) FROM b WHERE b.k = a.k)",
    ),
    "not in a total of each": (
        "v BIGINT",
        "SELECT v FROM a WHERE v NOT IN (SELECT SUM(w) FROM b WHERE b.k = a.k)",
    ),
    "all of a total of each": (
        "v BIGINT, x BOOLEAN",
        "SELECT v, v >= ALL (SELECT MAX(w) FROM b WHERE b.k = a.k) FROM a",
    ),
    "in a group of each": (
        "g STRING, v BIGINT",
        "SELECT g, v FROM a WHERE v IN (SELECT MAX(w) FROM b WHERE b.k = a.k AND b.w <= a.v GROUP BY h)",
    ),
    "the nearest of each": (
        "v BIGINT, w BIGINT",
        "SELECT v, (SELECT w FROM b WHERE b.k = a.k ORDER BY ABS(w * 10 - a.v * 11), w LIMIT 1) FROM a",
    ),
    "a hot key": (
        "g STRING, h STRING, v BIGINT",
        "SELECT /*+ SKEW('a', 'k') */ a.g, b.h, a.v FROM a JOIN b ON a.k = b.k AND a.v < b.w",
    ),
    "a hot key on the right, a group": (
        "k BIGINT, s BIGINT, n BIGINT",
        "SELECT /*+ SKEW('b', 'k', 1, 3) */ k, SUM(a.v), COUNT(*) FROM a RIGHT JOIN b USING (k) GROUP BY k",
    ),
    "a hot key that is padded": (
        "g STRING, h STRING, w BIGINT",
        "SELECT /*+ SKEW('a', 'k', 2) */ a.g, b.h, c.w FROM a LEFT JOIN b ON a.k = b.k"
        " LEFT JOIN (SELECT k, SUM(w) AS w FROM b GROUP BY k) AS c ON a.k = c.k",
    ),
    "a hot key of a condition": (
        "g STRING, v BIGINT",
        "SELECT /*+ SKEW('a', 'k', 1) */ g, v FROM a WHERE k IN (SELECT k FROM b WHERE w > 2)",
    ),
    "a hot key of NOT IN": (
        "g STRING, v BIGINT",
        "SELECT /*+ SKEW('a', 'k') */ g, v FROM a WHERE k NOT IN (SELECT k FROM b WHERE w > 5)",
    ),
    "one group": ("s BIGINT, m BIGINT", "SELECT SUM(v), MAX(v) FROM a HAVING COUNT(*) > 0"),
}


def random_rows(rng: random.Random, letters: str) -> list[list[tuple[int, Row]]]:
    """Batches of rows that come (+1) and go (-1); few values, NULLs among them, so that all meet."""
    there: list[Row] = []
    batches = []
    for _ in range(5):
        batch = []
        for _ in range(rng.choice([0, 2, 8])):
            if there and rng.random() < 0.4:
                batch.append((-1, there.pop(rng.randrange(len(there)))))
            else:
                row = (rng.choice([1, 2, 3, None]), rng.choice([*letters, None]), rng.choice([1, 3, 5, 7]))
                there.append(row)
                batch.append((1, row))
        batches.append(batch)
    return batches


def write(path: Path, head: str, batches: list[list[tuple[int, Row]]]) -> list[Row]:
    """Write an input file; the rows that are there in the end."""
    sections = []
    left: Counter[Row] = Counter()
    for batch in batches:
        sections.append("\n".join(f"| {'+I' if n > 0 else '-D'} | {' | '.join(map(_text, row))} |" for n, row in batch))
        for n, row in batch:
            left[row] += n
    path.write_text(f"|  | {head} |\n|--|--|--|--|\n" + "\n---\n".join(sections))
    return sorted(left.elements(), key=repr)


def _text(value: object) -> str:
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


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
    (tmp_path / "pipeline.sql").write_text(
        f"{TABLES}CREATE TABLE answer ({columns})"
        f" WITH ('connector' = 'kafka', 'topic' = 'answer', 'format' = 'changelog-json');\nINSERT INTO answer {query};"
    )
    left = {
        table: (head, write(tmp_path / f"{table}.rows", head, random_rows(rng, "xyz" if table == "a" else "pq")))
        for table, head in (("a", "k | g | v"), ("b", "k | h | w"))
    }
    outcome = run_case(tmp_path, load(tmp_path / "pipeline.sql", {}).jobs, sql, shards=3)
    assert not any(outcome.dead)
    came = Counter(applied(outcome.changes["answer"], None))
    for table, (head, rows) in left.items():
        schema = pa.schema(zip(head.split(" | "), (pa.int64(), pa.string(), pa.int64()), strict=True))
        given = [dict(zip(schema.names, row, strict=True)) for row in rows]
        batch.register("given", pa.Table.from_pylist(given, schema=schema))
        batch.execute(f"CREATE TEMP TABLE {table} AS FROM given")
    answer = batch.execute(apart[0] if apart else query).fetchall()
    assert came == Counter(tuple(map(_text, row)) for row in answer)
