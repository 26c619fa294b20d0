"""In which order tables are joined where no hint says it, and names that would mean another column in another order."""

from __future__ import annotations

import pytest

from tests.sql.outline import columns, mistakes, outline, plan

TABLES = "".join(
    f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{name}',"
    " 'properties.bootstrap.servers' = 'b', 'format' = 'json');\n"
    for name, columns in {
        "c": "k INT, x INT, at TIMESTAMP(3), WATERMARK FOR at AS at",
        "d": "y INT, m INT, dt TIMESTAMP(3), WATERMARK FOR dt AS dt",
        "e": "n INT, z INT, k INT",
    }.items()
)


def order(query: str) -> list[str]:
    """The tables of a query in the order in which they are joined."""
    lines = outline(plan(query, TABLES)).splitlines()
    return [line.split()[-1] for line in lines if line.strip().startswith("scan ")]


MOVED = [
    # d has nothing to do with c before e has come.
    ("SELECT c.x FROM c, d, e WHERE c.x = e.n AND d.m = e.z", "ced"),
    ("SELECT c.x FROM c JOIN d ON TRUE JOIN e ON c.x = e.n AND d.m = e.z", "ced"),
    ("SELECT c.x FROM c JOIN d ON c.x < d.m JOIN e ON c.x = e.n AND d.m + c.x = e.z + d.y AND d.y = e.n", "ced"),
    ("SELECT c.x FROM c CROSS JOIN d CROSS JOIN e WHERE e.n = c.x + 1 AND d.m IS NOT DISTINCT FROM e.z", "ced"),
    ("SELECT c.x FROM c CROSS JOIN d JOIN e ON e.n = c.x JOIN e AS f ON f.n = d.m AND f.z = e.z", "ceed"),
    # The time of d is compared with that of c, so that only what is between them waits.
    (
        "SELECT c.x FROM e, d, c WHERE c.x = e.n AND d.dt BETWEEN c.at AND c.at + INTERVAL '1' HOUR",
        "ecd",
    ),
]

KEPT = [
    "SELECT c.x FROM c JOIN d ON c.x = d.y JOIN e ON e.n = d.m",
    "SELECT c.x FROM c, d, e WHERE c.x = e.n",
    "SELECT c.x FROM c, d, e WHERE c.x < d.m AND c.x < e.n",
    "SELECT c.x FROM c, d, e WHERE c.x + d.y = e.n AND d.y + e.z = c.k",
    # Rows wait for others by time alone, and then by a key.
    "SELECT c.x FROM c, d, e WHERE d.dt BETWEEN c.at AND c.at + INTERVAL '1' HOUR AND c.x = e.n AND d.m = e.z",
    # Other orders would pad, merge or ask otherwise.
    "SELECT c.x FROM c CROSS JOIN d LEFT JOIN e ON c.x = e.n AND d.m = e.z",
    "SELECT c.x FROM c CROSS JOIN d JOIN e USING (k) WHERE d.m = e.z",
    "SELECT c.x FROM c JOIN d ON TRUE JOIN e ON c.x = e.n AND d.m = e.z AND c.x IN (SELECT z FROM e)",
    "SELECT /*+ LEADING(c, d, e) */ c.x FROM c, d, e WHERE c.x = e.n AND d.m = e.z",
]


@pytest.mark.parametrize(("query", "tables"), MOVED)
def test_a_table_with_nothing_to_compare_it_by_waits_for_what_it_is_compared_with(query: str, tables: str):
    assert "".join(order(query)) == tables


@pytest.mark.parametrize("query", KEPT)
def test_the_order_is_kept_where_no_other_leaves_fewer_tables_with_nothing_to_compare(query: str):
    assert "".join(order(query))[:3] == "cde"


def test_the_columns_stay_in_the_order_of_the_query():
    found = plan("SELECT * FROM c, d, e WHERE c.x = e.n AND d.m = e.z", TABLES)
    shown = "k INT, x INT, at TIMESTAMP(3), y INT, m INT, dt TIMESTAMP(3), n INT, z INT, k INT"
    assert columns(found) == shown


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            "SELECT x FROM c, d, e WHERE k = m AND n = x",
            'column "k" is ambiguous\n  detail: it is a column of c and of e\n  hint:   write c.k or e.k',
        ),
        (
            "SELECT /*+ LEADING(e) */ x FROM c JOIN d ON k = m JOIN e ON n = x",
            'LEADING cannot move a condition with "k"\n'
            "  detail: it is a column of c and of e, and the order says of which one\n"
            "  hint:   write c.k or e.k",
        ),
        (
            "SELECT /*+ LEADING(e) */ x FROM c JOIN d ON n = m JOIN e ON n = x",
            'LEADING cannot move a condition with "n"\n'
            "  detail: it is a column of e, which is joined later\n"
            "  hint:   write the condition into WHERE",
        ),
        ("SELECT x FROM c JOIN d ON n = m JOIN e ON n = x", 'column "n" does not exist'),
    ],
)
def test_a_name_of_several_tables_is_not_taken_for_the_first_that_is_joined(query: str, mistake: str):
    (found,) = mistakes(query, TABLES)
    assert found.startswith(mistake)


def test_a_name_of_several_tables_keeps_the_order_in_which_it_means_one():
    assert order("SELECT x FROM c JOIN d ON x < k JOIN e ON n = x AND z = m") == ["c", "d", "e"]
    assert order("SELECT x FROM c JOIN d ON x < c.k JOIN e ON n = x AND z = m") == ["c", "e", "d"]
