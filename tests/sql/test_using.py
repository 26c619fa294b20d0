"""USING, NATURAL JOIN, joins in parentheses, and the order that LEADING asks for."""

from __future__ import annotations

import pytest

from tests.sql.outline import columns, mistakes, outline, plan

TABLES = "".join(
    f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{name}',"
    " 'properties.bootstrap.servers' = 'b', 'format' = 'json');\n"
    for name, columns in {"c": "k INT, x INT", "d": "y INT, k INT", "e": "k BIGINT, z INT"}.items()
)

COLUMNS = [
    ("SELECT * FROM c NATURAL JOIN d", "c.k, c.x, d.y", "k INT, x INT, y INT"),
    ("SELECT * FROM d NATURAL LEFT JOIN c", "d.k, d.y, c.x", "k INT, y INT, x INT"),
    ("SELECT * FROM d NATURAL RIGHT JOIN c", "c.k, d.y, c.x", "k INT, y INT, x INT"),
    ("SELECT * FROM d FULL JOIN e USING (k)", "k, d.y, e.z", "k BIGINT, y INT, z INT"),
    ("SELECT k, d.k, c.k FROM d FULL JOIN c USING (k)", "k, d.k, c.k", "k INT, k INT, k INT"),
    ("SELECT c.* FROM d RIGHT JOIN c USING (k)", "c.k, c.x", "k INT, x INT"),
    ("SELECT * FROM d JOIN (c JOIN e USING (k)) USING (k)", "d.k, d.y, c.x, e.z", "k INT, y INT, x INT, z INT"),
    ("SELECT * FROM (c JOIN e USING (k)) AS t, d", "t.k, t.x, t.z, d.y, d.k", "k INT, x INT, z INT, y INT, k INT"),
    ("SELECT * FROM c NATURAL JOIN (SELECT z FROM e) AS f", "c.k, c.x, f.z", "k INT, x INT, z INT"),
]


@pytest.mark.parametrize(("query", "listed", "shape"), COLUMNS)
def test_a_merged_column_is_listed_once_and_first(query: str, listed: str, shape: str):
    found = plan(query, TABLES)
    assert outline(found).splitlines()[0] == f"project {listed}"
    assert columns(found) == shape


def test_a_full_join_merges_what_was_merged_before():
    found = outline(plan("SELECT k FROM c FULL JOIN d USING (k) FULL JOIN e USING (k)", TABLES))
    assert found.splitlines()[1].strip().startswith("project COALESCE(CAST(k AS BIGINT), k)")


def test_a_join_in_parentheses_is_made_first_and_keeps_the_names_of_its_tables():
    query = "SELECT /*+ STATE_TTL('e' = '1d') */ c.x, e.z FROM d LEFT JOIN (c JOIN e ON c.x = e.z) ON d.k = c.k"
    assert outline(plan(query, TABLES)) == (
        "project c.x, e.z\n"
        "  left join k = k | for 86400000 ms\n"
        "    scan d\n"
        "    inner join x = z | for 86400000 ms\n"
        "      scan c\n"
        "      scan e"
    )


def test_leading_names_the_tables_that_are_joined_first():
    query = "SELECT /*+ LEADING(e, d) */ * FROM c JOIN d ON c.x = d.y JOIN e ON e.z = d.k AND c.x > 0"
    found = plan(query, TABLES)
    assert outline(found) == (
        "project c.k, c.x, d.y, d.k, e.k, e.z\n"
        "  filter (c.x > 0)\n"
        "    project k, x, y, k, k, z\n"
        "      inner join y = x\n"
        "        inner join z = k\n"
        "          scan e\n"
        "          scan d\n"
        "        scan c"
    )


def test_leading_in_the_order_of_the_query_changes_nothing():
    query = "SELECT {} c.x FROM c LEFT JOIN d ON c.k = d.k"
    assert outline(plan(query.format("/*+ LEADING(c, d) */"), TABLES)) == outline(plan(query.format(""), TABLES))


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            "SELECT /*+ LEADING(d, c) */ x FROM c LEFT JOIN d ON c.k = d.k",
            "LEADING cannot move these joins\n"
            "  detail: only INNER JOINs of named tables, with ON or in WHERE, give the same rows in any order\n"
            "  hint:   name the tables in the order in which they are written, or write them in another",
        ),
        (
            "SELECT /*+ LEADING(q) */ x FROM c JOIN d ON c.k = d.k",
            'LEADING names "q", which the query does not join\n  detail: it joins c, d',
        ),
        (
            "SELECT x FROM c NATURAL JOIN d ON c.k = d.k",
            "NATURAL JOIN takes no condition\n  hint:   leave out NATURAL, or the condition",
        ),
        (
            "SELECT x FROM c JOIN d USING (q)",
            'column "q" does not exist in "c"\n  detail: c has the columns k, x',
        ),
        ("SELECT x FROM c JOIN d USING (k, k)", 'USING names "k" twice'),
        (
            "SELECT x FROM (c JOIN d ON c.k = d.k) JOIN e USING (k)",
            'column "k" is ambiguous\n  detail: it is a column of c and of d\n  hint:   write c.k or d.k',
        ),
    ],
)
def test_a_wrong_join_is_refused_with_a_reason(query: str, mistake: str):
    assert mistakes(query, TABLES) == [mistake]
