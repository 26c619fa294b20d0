"""UNNEST in FROM: which columns it gives, and what is refused."""

from __future__ import annotations

import pytest

from tests.sql.outline import columns, mistakes, outline, plan

TABLE = """CREATE TABLE t (id BIGINT, xs ARRAY<INT>, m MAP<STRING, INT>, rs ARRAY<ROW<a INT, b STRING>>,
  ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = 't',
  'properties.bootstrap.servers' = 'b', 'format' = 'json');"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id, x, ts FROM t CROSS JOIN UNNEST(xs) AS u (x)", "id BIGINT, x INT, ts TIMESTAMP(3) *event"),
        ("SELECT u.k, v FROM t, UNNEST(t.m) AS u (k, v)", "k STRING, v INT"),
        ("SELECT id, a, b FROM t CROSS JOIN UNNEST(rs)", "id BIGINT, a INT, b STRING"),
        ("SELECT p, n FROM t INNER JOIN UNNEST(rs) WITH ORDINALITY AS u (p, q, n) ON TRUE", "p INT, n INT!"),
        ("SELECT p FROM t JOIN UNNEST(rs) AS u (p, q) ON p = id AND q <> 'x'", "p INT"),
        ("SELECT x, n FROM t LEFT JOIN UNNEST(xs) WITH ORDINALITY AS u (x, n) ON TRUE", "x INT, n INT"),
        ("SELECT x FROM UNNEST(ARRAY[1, 2]) AS u (x)", "x INT"),
        ("SELECT * FROM UNNEST(ARRAY[1, 2]) AS u (x)", "x INT"),
    ],
)
def test_the_columns_of_elements(query: str, expected: str):
    assert columns(plan(query, TABLE)) == expected


def test_an_unnest_reads_what_is_left_of_it():
    query = "SELECT id, y FROM t CROSS JOIN UNNEST(xs) AS u (x) CROSS JOIN UNNEST(ARRAY[x, id]) AS w (y) WHERE x > 1"
    assert outline(plan(query, TABLE)) == (
        """project id, y
  filter (x > 1)
    unnest ARRAY[CAST(x AS BIGINT), id]
      project id, xs, m, rs, ts, x, ARRAY[CAST(x AS BIGINT), id]
        unnest xs
          scan t"""
    )


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        ("SELECT id FROM t CROSS JOIN UNNEST(id) AS u (x)", "UNNEST takes an ARRAY, a MAP or a MULTISET, not BIGINT"),
        (
            "SELECT id FROM t CROSS JOIN UNNEST(m) AS u (x)",
            "1 column names are given for 2 columns\n  detail: KEY STRING, VALUE INT",
        ),
        (
            "SELECT id FROM t LEFT JOIN UNNEST(xs) AS u (x) ON x > 1",
            "UNNEST is joined ON TRUE\n  hint:   write the condition into WHERE",
        ),
        (
            "SELECT id FROM t FULL JOIN UNNEST(xs) AS u (x) ON TRUE",
            "UNNEST takes no FULL JOIN\n  detail: elements come from a row of the left side, so each has one\n"
            "  hint:   write CROSS JOIN UNNEST(...), or LEFT JOIN UNNEST(...) ON TRUE to keep rows without elements",
        ),
        (
            "SELECT id FROM t CROSS JOIN UNNEST(xs) AS t (x)",
            'the name "t" stands for two tables of the query\n'
            "  hint:   name the elements otherwise: UNNEST(...) AS other_t",
        ),
        (
            "SELECT id FROM t CROSS JOIN UNNEST(nope) AS u (x)",
            'column "nope" does not exist in "t"\n  detail: t has the columns id, xs, m, rs, ts',
        ),
    ],
)
def test_a_wrong_unnest_is_refused_with_a_reason(query: str, mistake: str):
    assert mistakes(query, TABLE) == [mistake]
