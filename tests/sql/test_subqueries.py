"""Queries inside expressions: what joins they become, how long these keep rows, what is refused."""

from __future__ import annotations

import pytest

from tests.sql.outline import mistakes, outline, plan

CASES = [
    (
        "SELECT a1 FROM a WHERE a2 > 1 OR a1 IN (SELECT b1 FROM b)",
        """
project a1
  filter ((a2 > 1) OR matches)
    mark join a1 = b1
      scan a
      scan b
""",
    ),
    (
        "SELECT /*+ STATE_TTL('a' = '1d') */ a1,"
        " EXISTS (SELECT /*+ STATE_TTL('b' = '1h') */ 1 FROM b WHERE b1 = a1) AS e"
        " FROM a",
        """
project a1, matches
  mark join a1 = b1 for 86400000 ms | for 3600000 ms
    scan a
    scan b
""",
    ),
    (
        "SELECT a1 FROM a WHERE a2 > ALL (SELECT b2 FROM b WHERE b1 = a1)",
        """
project a1
  anti join a1 = b1 where (((a2 <= b2) OR (a2 IS NULL)) OR (b2 IS NULL))
    scan a
    scan b
""",
    ),
    (
        "SELECT a1 FROM a WHERE a2 = SOME (SELECT b2 FROM b)",
        """
project a1
  semi join a2 = b2
    scan a
    scan b
""",
    ),
    (
        "SELECT (SELECT name FROM item WHERE id = a3) AS n FROM a",
        """
project name
  project a1, a2, a3, CAST(a3 AS BIGINT), id, name, TRUE, name
    left join CAST(a3 AS BIGINT) = id
      project a1, a2, a3, CAST(a3 AS BIGINT)
        scan a
      project id, name, TRUE
        normalize id
          scan item
""",
    ),
    (
        "SELECT (SELECT b3 FROM b WHERE b1 = a1) AS n FROM a",
        """
project the only row(b3, rows)
  project a1, a2, a3, b1, b3, rows, the only row(b3, rows)
    left join a1 = b1
      scan a
      group by b1: MIN(b3), COUNT(*)
        project b1, b3
          scan b
""",
    ),
    (
        "SELECT a1 FROM a WHERE EXISTS (SELECT * FROM a AS x WHERE a1 = a.a2)",
        """
project a1
  semi join a2 = a1
    scan a
    scan a
""",
    ),
]


@pytest.mark.parametrize(("query", "nodes"), CASES)
def test_a_query_inside_an_expression_is_a_join(query: str, nodes: str):
    assert outline(plan(query)) == nodes.strip("\n")


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        ("SELECT (SELECT b1, b2 FROM b) AS x FROM a", "a query as a value selects one column, this one 2"),
        ("SELECT a1 FROM a WHERE (a1, a2) IN (SELECT b1 FROM b)", "IN compares 2 values with a query of 1 column"),
        (
            "SELECT a1, (SELECT MAX(b2) FROM b WHERE b1 = a.a2) AS m FROM a GROUP BY a1",
            'column "a.a2" is neither grouped by nor aggregated\n  detail: the query groups by a1\n'
            "  hint:   add a.a2 to GROUP BY, or take MAX(a.a2)",
        ),
        (
            "SELECT a1 FROM a WHERE (a1, a2) < ANY (SELECT b1, b2 FROM b)",
            "several values are compared with the rows of a query by = and <> only\n"
            "  hint:   compare them one by one, in WHERE of a query in EXISTS (...)",
        ),
        (
            "SELECT a1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b1 = a1 AND EXISTS"
            " (SELECT 1 FROM item WHERE id = b1 AND name = CAST(a.a2 AS STRING)))",
            '"a" belongs to an outer query, and cannot be read here\n'
            "  detail: a subquery reads columns of the query directly around it, in its own SELECT, WHERE, GROUP BY"
            " and HAVING; not in FROM, ON, WITH or UNION\n"
            "  hint:   select the columns that are compared, and compare them in WHERE of the subquery; or join"
            " LATERAL (SELECT ...)",
        ),
    ],
)
def test_the_message_of_a_wrong_inner_query_says_why(query: str, mistake: str):
    assert mistakes(query) == [mistake]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a1 FROM a WHERE EXISTS (SELECT 1 FROM (SELECT b1, COUNT(*) AS n FROM b WHERE b1 = a.a1 GROUP BY b1) x)",
        "SELECT a1 FROM a WHERE a1 IN (SELECT b1 FROM (SELECT b1 FROM b WHERE b.b1 = a.a2) AS x)",
        "SELECT a1, (SELECT MAX(q) FROM (SELECT a.a2 AS q FROM b) AS x) FROM a",
        "SELECT a1 FROM a WHERE a1 IN (SELECT b1 FROM b UNION SELECT b1 FROM b WHERE b1 = a.a2)",
        "SELECT a1 FROM a WHERE EXISTS (WITH q AS (SELECT b1 FROM b WHERE b.b1 = a.a1) SELECT 1 FROM q)",
        "SELECT a1 FROM a WHERE EXISTS (SELECT 1 FROM b JOIN item ON item.id = a.a1)",
        "SELECT a1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM item WHERE item.id = a.a1))",
    ],
)
def test_a_table_that_is_too_far_out_is_named_in_the_message(query: str):
    found = mistakes(query)
    assert found
    assert {each.partition("\n")[0] for each in found} == {'"a" belongs to an outer query, and cannot be read here'}


@pytest.mark.parametrize(
    "call", ["TIMESTAMPDIFF(SECOND, ship.ts, pay.ts) > 3", "TIMESTAMPADD(DAY, 1, ship.ts) > pay.ts"]
)
def test_a_unit_of_time_is_no_column_of_the_query_around(call: str):
    query = f"SELECT who FROM pay WHERE EXISTS (SELECT 1 FROM ship WHERE pay_id = id AND {call})"
    assert "semi" in outline(plan(query))


def test_a_table_inside_hides_one_of_the_same_name_around():
    assert mistakes("SELECT a1 FROM a WHERE a1 IN (SELECT x.a1 FROM (SELECT a.a1 FROM a) AS x)") == []
