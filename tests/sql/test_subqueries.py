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
  anti join a1 = b1 where (((a2 <= b2) OR IS NULL(a2)) OR IS NULL(b2))
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
  project a1, a2, a3, CAST(a3), id, name, TRUE, name
    left join CAST(a3) = id
      project a1, a2, a3, CAST(a3)
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
            '"a" is of a query further out than the one around this one\n'
            "  detail: a query reads the columns of its own tables and of the query directly around it\n"
            "  hint:   join the tables of the two inner queries in one",
        ),
    ],
)
def test_a_wrong_inner_query_is_told_why(query: str, mistake: str):
    assert mistakes(query) == [mistake]
