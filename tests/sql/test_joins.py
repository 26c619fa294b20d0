"""Joins: keys, residual conditions, bounds between times, state kept per side."""

from __future__ import annotations

import pytest

from service.plan.nodes import Aggregate, SetOperation
from service.plan.walk import in_order
from service.sql.errors import PipelineErrors
from tests.sql.outline import columns, outline, plan, resolved

CASES = [
    (
        """SELECT a1, b1 FROM a JOIN b ON a1 = b1 AND a2 > b2""",
        """
project a1, b1
  inner join a1 = b1 where (a2 > b2)
    scan a
    scan b
""",
        "a1 INT, b1 INT",
    ),
    (
        """SELECT * FROM pay INNER JOIN item ON pay.id = item.id""",
        """
project pay.who, pay.amount, pay.id, pay.ts, pay.at, item.id, item.name
  inner join id = id
    scan pay
    normalize id
      scan item
""",
        "who STRING!, amount DECIMAL(10, 2), id BIGINT, ts TIMESTAMP(3), at TIMESTAMP_LTZ(3)!, id BIGINT!, name STRING",
    ),
    (
        """SELECT a1, b3 FROM a LEFT JOIN b ON a1 + 1 = b1 AND a.a2 IS NOT DISTINCT FROM b.b2""",
        """
project a1, b3
  left join (a1 + 1) = b1 and a2 is b2
    project a1, a2, a3, (a1 + 1)
      scan a
    scan b
""",
        "a1 INT, b3 STRING",
    ),
    (
        """SELECT b3, a1 FROM a RIGHT JOIN b ON a1 + 1 = b1""",
        """
project b3, a1
  right join (a1 + 1) = b1
    project a1, a2, a3, (a1 + 1)
      scan a
    scan b
""",
        "b3 STRING, a1 INT",
    ),
    (
        """SELECT /*+ STATE_TTL('x' = '1d', 'y' = '4h') */ x.a1 FROM a AS x JOIN b AS y ON x.a1 = y.b1""",
        """
project x.a1
  inner join a1 = b1 for 86400000 ms | for 14400000 ms
    scan a
    scan b
""",
        "a1 INT",
    ),
    (
        """SELECT a1 FROM a, b WHERE a1 = b1 AND a2 = 3""",
        """
project a1
  filter (a2 = 3)
    inner join a1 = b1
      scan a
      scan b
""",
        "a1 INT",
    ),
    (
        """SELECT a.a1, x.a1 AS other FROM a JOIN b ON a1 = b1 JOIN a AS x ON x.a1 = b.b2""",
        """
project a.a1, x.a1
  inner join b2 = a1
    inner join a1 = b1
      scan a
      scan b
    scan a
""",
        "a1 INT, other INT",
    ),
    (
        """SELECT id, pay.ts, name FROM pay JOIN item USING (id)""",
        """
project id, pay.ts, name
  project id, who, amount, ts, at, id, name
    inner join id = id
      scan pay
      normalize id
        scan item
""",
        "id BIGINT, ts TIMESTAMP(3), name STRING",
    ),
    (
        """SELECT p.id, port FROM pay p, ship s WHERE p.id = s.pay_id AND s.ts BETWEEN p.ts AND p.ts +
INTERVAL '4' HOUR""",
        """
project p.id, port
  project who, amount, id, ts, PROCTIME(), pay_id, port, ts, CAST(s.pay_id AS BIGINT)
    inner interval join id = CAST(s.pay_id AS BIGINT), -14400000 <= ts - ts <= 0
      scan pay
      project pay_id, port, ts, CAST(s.pay_id AS BIGINT)
        scan ship
""",
        "id BIGINT, port STRING",
    ),
    (
        """SELECT p.id FROM pay p JOIN ship s ON p.id = s.pay_id AND p.ts > s.ts - INTERVAL '4' HOUR AND
p.ts - INTERVAL '1' HOUR < s.ts AND p.amount > 1""",
        """
project p.id
  project who, amount, id, ts, PROCTIME(), pay_id, port, ts, CAST(s.pay_id AS BIGINT)
    inner interval join id = CAST(s.pay_id AS BIGINT), -14399999 <= ts - ts <= 3599999 where (p.amount > 1)
      scan pay
      project pay_id, port, ts, CAST(s.pay_id AS BIGINT)
        scan ship
""",
        "id BIGINT",
    ),
    (
        """SELECT p.id FROM pay p LEFT JOIN ship s ON p.id = s.pay_id AND p.ts > s.ts AND p.ts < s.ts""",
        """
project p.id
  project who, amount, id, ts, PROCTIME(), pay_id, port, ts, CAST(s.pay_id AS BIGINT)
    left interval join id = CAST(s.pay_id AS BIGINT), 0 <= ts - ts <= 0 where FALSE
      scan pay
      project pay_id, port, ts, CAST(s.pay_id AS BIGINT)
        scan ship
""",
        "id BIGINT",
    ),
    (
        """SELECT a1, b1 FROM a FULL OUTER JOIN b ON a1 = b1 AND a2 < b2""",
        """
project a1, b1
  full join a1 = b1 where (a2 < b2)
    scan a
    scan b
""",
        "a1 INT, b1 INT",
    ),
    (
        """SELECT * FROM a WHERE a1 IN (SELECT b1 FROM b WHERE b2 > 0) AND a2 = 1""",
        """
project a.a1, a.a2, a.a3
  semi join a1 = b1
    filter (a2 = 1)
      scan a
    filter (b2 > 0)
      scan b
""",
        "a1 INT, a2 INT, a3 INT",
    ),
    (
        """SELECT * FROM a WHERE a1 NOT IN (SELECT b1 FROM b)""",
        """
project a.a1, a.a2, a.a3
  anti join a1 = b1
    anti join spread(TRUE, a1) = spread where (is_null OR (a1 IS NULL))
      project a1, a2, a3, spread(TRUE, a1)
        scan a
      unnest copies(TRUE) with ordinality
        project is_null, copies(TRUE)
          group by is_null
            project (b1 IS NULL)
              scan b
    scan b
""",
        "a1 INT, a2 INT, a3 INT",
    ),
    (
        """SELECT * FROM item WHERE id NOT IN (SELECT i.id FROM item AS i)""",
        """
project item.id, item.name
  anti join id = id
    normalize id
      scan item
    normalize id
      scan item
""",
        "id BIGINT!, name STRING",
    ),
    (
        """SELECT * FROM a WHERE (a1, a2) IN (SELECT b1, b2 FROM b)""",
        """
project a.a1, a.a2, a.a3
  semi join a1 = b1 and a2 = b2
    scan a
    scan b
""",
        "a1 INT, a2 INT, a3 INT",
    ),
    (
        """SELECT /*+ STATE_TTL('a' = '1 h') */ a2 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.b1 = a.a1
AND b2 > 0 AND b2 < a2)""",
        """
project a2
  semi join a1 = b1 where (b2 < a2) for 3600000 ms |
    scan a
    filter (b2 > 0)
      scan b
""",
        "a2 INT",
    ),
    (
        """SELECT a2 FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b1 = a1)""",
        """
project a2
  anti join a1 = b1
    scan a
    scan b
""",
        "a2 INT",
    ),
    (
        """SELECT a1, COUNT(*) AS n FROM a GROUP BY a1 HAVING COUNT(*) IN (SELECT b1 FROM b)""",
        """
project a1, COUNT(*)
  semi join COUNT(*) = CAST(b1 AS BIGINT)
    group by a1: COUNT(*)
      project a1
        scan a
    project b1, b2, b3, CAST(b1 AS BIGINT)
      scan b
""",
        "a1 INT, n BIGINT!",
    ),
    (
        """SELECT p.id, s.port, p.ts FROM pay p LEFT JOIN ship s ON p.id = s.pay_id AND s.ts BETWEEN p.ts -
INTERVAL '1' MINUTE AND p.ts + INTERVAL '4' HOUR""",
        """
project p.id, s.port, p.ts
  project who, amount, id, ts, PROCTIME(), pay_id, port, ts, CAST(s.pay_id AS BIGINT)
    left interval join id = CAST(s.pay_id AS BIGINT), -14400000 <= ts - ts <= 60000
      scan pay
      project pay_id, port, ts, CAST(s.pay_id AS BIGINT)
        scan ship
""",
        "id BIGINT, port STRING, ts TIMESTAMP(3) *event",
    ),
    (
        """SELECT id FROM pay WHERE NOT EXISTS (SELECT * FROM ship WHERE pay_id = id AND ship.ts BETWEEN
pay.ts AND pay.ts + INTERVAL '4' HOUR)""",
        """
project id
  project who, amount, id, ts, PROCTIME()
    anti interval join id = CAST(pay_id AS BIGINT), -14400000 <= ts - ts <= 0
      scan pay
      project pay_id, port, ts, CAST(pay_id AS BIGINT)
        scan ship
""",
        "id BIGINT",
    ),
]


@pytest.mark.parametrize(("query", "nodes", "shape"), CASES)
def test_a_join_resolves(query: str, nodes: str, shape: str):
    found = plan(query)
    assert outline(found) == nodes.strip("\n")
    assert columns(found) == shape


@pytest.mark.parametrize(
    ("left", "right", "ttl"),
    [
        ("/*+ STATE_TTL('a' = '1 h') */", "/*+ STATE_TTL('b' = '2 h') */", 7_200_000),
        ("/*+ STATE_TTL('a' = '1 h') */", "/*+ STATE_TTL('b' = '0 s') */", 0),
        ("/*+ STATE_TTL('a' = '1 h') */", "", 0),
        ("", "", 0),
    ],
)
@pytest.mark.parametrize("word", ["INTERSECT", "EXCEPT ALL"])
def test_intersect_and_except_keep_rows_as_long_as_the_longest_of_their_hints(
    word: str, left: str, right: str, ttl: int
):
    (found,) = [
        node
        for node in in_order(resolved(f"SELECT {left} a1 FROM a {word} SELECT {right} b1 FROM b").sinks)
        if isinstance(node, SetOperation)
    ]
    assert found.ttl == ttl


@pytest.mark.parametrize(
    ("query", "ttls"),
    [
        ("(SELECT {a} a1 FROM a) EXCEPT (SELECT {b} b1 FROM b)", [7_200_000]),
        ("(SELECT {a} a1 FROM a) EXCEPT ((SELECT b1 FROM b))", [0]),
        ("(SELECT {b} b1 FROM b EXCEPT SELECT {a} a1 FROM a) INTERSECT SELECT {a} a1 FROM a", [7_200_000, 7_200_000]),
        ("SELECT {a} a1 FROM a INTERSECT (SELECT {a} a1 FROM a UNION ALL SELECT {b} b1 FROM b)", [7_200_000]),
    ],
)
def test_hints_within_parentheses_bound_what_intersect_and_except_keep(query: str, ttls: list[int]):
    hints = {"a": "/*+ STATE_TTL('a' = '1 h') */", "b": "/*+ STATE_TTL('b' = '2 h') */"}
    nodes = in_order(resolved(query.format(**hints)).sinks)
    assert [node.ttl for node in nodes if isinstance(node, SetOperation)] == ttls


@pytest.mark.parametrize("query", ["SELECT {} DISTINCT a1 FROM a", "SELECT {} a1 FROM a UNION SELECT {} a2 FROM a"])
def test_a_hint_bounds_what_distinct_keeps(query: str):
    query = query.replace("{}", "/*+ STATE_TTL('a' = '1 h') */")
    assert [node.ttl for node in in_order(resolved(query).sinks) if isinstance(node, Aggregate)] == [3_600_000]


def test_a_query_in_the_condition_of_an_inner_join_is_a_join_of_its_rows():
    query = "SELECT a1 FROM a JOIN b ON a1 = b1 AND a2 IN (SELECT pay_id FROM ship) LEFT JOIN pay ON id = b2"
    lines = [line.strip() for line in outline(plan(query)).splitlines() if " join " in line]
    assert [line.split(" join")[0] for line in lines] == ["left", "semi", "inner"]


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_a_query_in_the_condition_of_an_outer_join_is_refused(kind: str):
    with pytest.raises(PipelineErrors) as caught:
        plan(f"SELECT a1 FROM a {kind} JOIN b ON a1 = b1 AND EXISTS (SELECT * FROM ship WHERE pay_id = a2)")
    assert f"a query in the condition of a {kind} JOIN is not supported" in str(caught.value)
