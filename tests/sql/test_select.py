"""SELECT, WHERE, GROUP BY, DISTINCT, UNION and WITH resolve to the nodes that their words mean."""

from __future__ import annotations

import pytest

from service.plan.nodes import Node
from service.plan.walk import fields
from service.sql.pipeline import PipelineErrors, read
from tests.sql.outline import columns, outline, plan

CASES = [
    (
        """SELECT who, amount * 2 AS twice FROM pay WHERE amount > 10 AND id IS NOT NULL""",
        """
project who, (amount * 2)
  filter ((amount > 10) AND (NOT (id IS NULL)))
    scan pay
""",
        "who STRING!, twice DECIMAL(21, 2)",
    ),
    (
        """SELECT * FROM (SELECT a1 AS x, a2 FROM a) AS s (u, v) WHERE s.u = 1""",
        """
project s.u, s.v
  filter (s.u = 1)
    project x, a2
      project a1, a2
        scan a
""",
        "u INT, v INT",
    ),
    (
        """SELECT who, COUNT(*), SUM(amount) AS s, SUM(amount) / COUNT(*) AS mean FROM pay GROUP BY who
HAVING COUNT(*) > 1""",
        """
project who, COUNT(*), SUM(amount), (SUM(amount) / COUNT(*))
  filter (COUNT(*) > 1)
    group by who: COUNT(*), SUM(amount)
      project who, amount
        scan pay
""",
        "who STRING!, EXPR$1 BIGINT!, s DECIMAL(38, 2), mean DECIMAL(38, 6)",
    ),
    (
        """SELECT COUNT(DISTINCT a2) FILTER (WHERE a3 > 0) AS n FROM a""",
        """
project COUNT(DISTINCT a2)
  group by nothing: COUNT(DISTINCT a2) if (a3 > 0)
    project a2, (a3 > 0)
      scan a
""",
        "n BIGINT!",
    ),
    (
        """SELECT a1 + 1, MAX(a2) FROM a GROUP BY a1 + 1""",
        """
project (a1 + 1), MAX(a2)
  group by (a1 + 1): MAX(a2)
    project (a1 + 1), a2
      scan a
""",
        "EXPR$0 INT, EXPR$1 INT",
    ),
    (
        """SELECT DISTINCT a1, a2 FROM a""",
        """
group by a1, a2
  project a1, a2
    scan a
""",
        "a1 INT, a2 INT",
    ),
    (
        """SELECT a1 FROM a UNION ALL SELECT id FROM pay""",
        """
union
  project CAST(a1 AS BIGINT)
    project a1
      scan a
  project id
    scan pay
""",
        "a1 BIGINT",
    ),
    (
        """WITH x AS (SELECT a1 FROM a) SELECT a1 FROM x UNION ALL SELECT b1 FROM b UNION ALL SELECT a1 FROM x""",
        """
union
  project a1
    project a1
      scan a
  project b1
    scan b
  project a1
    project a1
      scan a
""",
        "a1 INT",
    ),
    (
        """SELECT a1 FROM a UNION SELECT b1 FROM b""",
        """
group by a1
  union
    project a1
      scan a
    project b1
      scan b
""",
        "a1 INT",
    ),
    (
        """WITH x AS (SELECT a1 FROM a), y (k, n) AS (SELECT a1, COUNT(*) FROM x GROUP BY a1) SELECT n,
COUNT(*) AS m FROM y GROUP BY n""",
        """
project n, COUNT(*)
  group by n: COUNT(*)
    project n
      project a1, EXPR$1
        project a1, COUNT(*)
          group by a1: COUNT(*)
            project a1
              project a1
                scan a
""",
        "n BIGINT!, m BIGINT!",
    ),
]


@pytest.mark.parametrize(("query", "nodes", "shape"), CASES)
def test_a_query_resolves(query: str, nodes: str, shape: str):
    found = plan(query)
    assert outline(found) == nodes.strip("\n")
    assert columns(found) == shape


ROWS = """CREATE TABLE s (a INT, r ROW<x INT, `odd name` STRING, deep ROW<a INT, z DOUBLE>>, l ARRAY<ROW<q INT>>)
  WITH ('connector' = 'datagen');\n"""


@pytest.mark.parametrize(
    ("items", "names", "same"),
    [
        ("r.*", "x, odd name, deep", "s.r.x, s.r.`odd name`, s.r.deep"),
        ("s.r.*", "x, odd name, deep", "s.r.x, s.r.`odd name`, s.r.deep"),
        ("r.deep.*, a AS b", "a, z, b", "s.r.deep.a, s.r.deep.z, a AS b"),
        ("s.r.deep.*", "a, z", "s.r.deep.a, s.r.deep.z"),
        ("t.*", "q", "t.q"),
    ],
)
def test_a_star_behind_a_row_stands_for_its_fields(items: str, names: str, same: str):
    source = "s CROSS JOIN UNNEST(l) AS t" if items.startswith("t.") else "s"

    def resolved(listed: str) -> Node:
        job = read(f"{ROWS}CREATE TABLE o WITH ('connector' = 'print') AS SELECT {listed} FROM {source};").jobs[0]
        return job.sinks[0].input

    assert [each.name for each in fields(resolved(items))] == names.split(", ")
    assert outline(resolved(items)) == outline(resolved(same))


@pytest.mark.parametrize(
    ("item", "message"),
    [("a.*", "a.* stands for no columns"), ("r.x.*", "x.* stands for no columns"), ("r.no.*", "no.* stands for")],
)
def test_a_star_needs_a_row_or_a_table(item: str, message: str):
    with pytest.raises(PipelineErrors, match=message.replace("*", r"\*")):
        read(f"{ROWS}EXPLAIN SELECT {item} FROM s;")
