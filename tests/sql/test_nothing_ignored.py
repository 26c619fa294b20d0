"""What is written either works or is refused, before the first row comes."""

from __future__ import annotations

import pytest

from service.plan.nodes import Join
from service.plan.walk import in_order
from tests.sql.evaluation import evaluated
from tests.sql.outline import mistakes, plan


@pytest.mark.parametrize(
    ("query", "primary"),
    [
        ("SELECT a1 FROM a WHERE a1 = 1 OR 1/0 > 1", "(1 / 0) cannot be computed"),
        ("SELECT CASE WHEN a1 = 1 THEN CAST('x' AS INT) ELSE a1 END FROM a", "CAST('x' AS INT) cannot be computed"),
        ("SELECT a1 FROM a WHERE EXISTS (SELECT nosuch FROM b)", 'column "nosuch" does not exist'),
        (
            "SELECT a1 FROM a WHERE EXISTS (SELECT 1 FROM b /*+ OPTIONS('x' = 'y') */)",
            "connector 'kafka' has no option 'x'",
        ),
        ("SELECT v1 FROM v /*+ OPTIONS('nonsense' = '1') */", '"v" is a view, and has no options'),
        ("SELECT DISTINCT ON (a1) a1, a2 FROM a", "DISTINCT ON is not supported yet"),
        ("SELECT a.a1 FROM a LEFT JOIN b", "LEFT JOIN needs a condition"),
        (
            "SELECT SUM(id) OVER (ORDER BY ts ROWS BETWEEN 99999999999999999999 PRECEDING AND CURRENT ROW) FROM pay",
            "ROWS takes at most 2147483647 rows",
        ),
        ("SELECT COUNT(*) FROM a GROUP BY DISTINCT ROLLUP (a1), ROLLUP (a1)", "GROUP BY DISTINCT is not supported yet"),
        ("SELECT COUNT(*) FROM a GROUP BY a1 WITH ROLLUP", "WITH ROLLUP is not supported yet"),
        ("SELECT COUNT(*) FROM a GROUP BY a1 WITH CUBE", "WITH CUBE is not supported yet"),
        ("SELECT COUNT(*) FROM a GROUP BY a1 WITH TOTALS", "WITH TOTALS is not supported yet"),
        ("SELECT a1, a2 FROM a UNION ALL BY NAME SELECT a2, a1 FROM a", "BY NAME is not supported yet"),
        ("SELECT CAST(a2 AS INT DEFAULT 0 ON CONVERSION ERROR) FROM a", "DEFAULT in CAST is not supported yet"),
        ("SELECT CAST(a1 AS STRING FORMAT 'x') FROM a", "FORMAT in CAST is not supported yet"),
        ("SELECT a1 FROM a LIMIT 1 BY a2", "LIMIT BY is not supported yet"),
        ("SELECT a1 FROM a ORDER BY a1 WITH FILL LIMIT 3", "WITH FILL is not supported yet"),
        ("SELECT a1 FROM a AT (TIMESTAMP => '2024')", "AT or BEFORE a time is not supported yet"),
        ("SELECT a1 FROM a CHANGES (INFORMATION => DEFAULT)", "CHANGES is not supported yet"),
        ("SELECT a1 FROM a WHERE EXISTS (SELECT DISTINCT ON (b1) b1 FROM b)", "DISTINCT ON is not supported yet"),
        (
            "SELECT a1 FROM a WHERE a1 IN (SELECT b1 FROM b FOR UPDATE)",
            "a lock (FOR UPDATE, FOR SHARE) is not supported yet",
        ),
        ("WITH q AS (SELECT a1 FROM a), q AS (SELECT b1 FROM b) SELECT * FROM q", '"q" is declared twice'),
        (
            "SELECT COUNT(*) OVER w FROM pay WINDOW w AS (ORDER BY ts), w AS (PARTITION BY id ORDER BY ts)",
            '"w" is declared twice',
        ),
        (
            "WITH q AS (SELECT a1 FROM a) SELECT a1 FROM q /*+ OPTIONS('x' = '1') */",
            '"q" is a query of WITH, and has no',
        ),
        ("SELECT a1 FROM a CROSS JOIN b ON a1 = b1", "a CROSS JOIN has no condition"),
        (
            "SELECT SUM(id) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM pay",
            "EXCLUDE in a frame is not supported yet",
        ),
        ("SELECT a1 FROM (SELECT a1 FROM a UNION ALL BY NAME SELECT a1 FROM a)", "BY NAME is not supported yet"),
        ("SELECT LAG(id, 1, 'x') OVER (ORDER BY ts) FROM pay", "the default of LAG is CHAR(1) NOT NULL, its value"),
    ],
)
def test_what_cannot_work_is_refused(query, primary):
    (found,) = mistakes(query, "CREATE VIEW v AS SELECT a1 AS v1 FROM a;")
    assert found.startswith(primary.partition(" NOT NULL")[0])


def test_a_clause_of_a_view_that_nothing_reads_is_refused_once():
    (found,) = mistakes("SELECT a1 FROM w", "CREATE VIEW w AS SELECT a1 FROM a GROUP BY a1 WITH TOTALS;")
    assert found.startswith("WITH TOTALS is not supported yet")


def test_a_time_to_live_inside_exists_holds_for_its_side():
    query = "SELECT a1 FROM a WHERE EXISTS (SELECT /*+ STATE_TTL('b' = '1s') */ 1 FROM b WHERE b1 = a1)"
    (join,) = [n for n in in_order((plan(query),)) if isinstance(n, Join)]
    assert (join.left_ttl, join.right_ttl) == (0, 1000)


def test_constants_that_can_be_computed_are_no_mistake():
    assert (
        mistakes(
            "SELECT a1 FROM a WHERE TRY_CAST('x' AS INT) IS NULL OR a1 = 10 / 5 OR b1 IN (1, 2)".replace("b1", "a2")
        )
        == []
    )


def test_a_separator_alone_joins_nothing():
    assert evaluated("CONCAT_WS(',')")[0] == ""
