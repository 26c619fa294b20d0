"""Ranks in any order: which plan they become, and what is refused."""

from __future__ import annotations

import pytest

from service.plan.nodes import Job, Sink, TopN
from service.plan.passes import normalize
from service.plan.table import Connector, Table
from service.plan.walk import in_order
from tests.sql.outline import mistakes, outline, plan

RANKED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY amount DESC) AS n FROM pay)"


def normalized(query: str) -> str:
    """The outline of the plan after its passes."""
    node = plan(query)
    sink = Sink(input=node, table=Table("query", (), Connector("print")), columns=())
    return outline(normalize(Job("query", (sink,))).sinks[0].input)


def top_n(query: str) -> TopN:
    """The only Top-N of a query, after the passes."""
    sink = Sink(input=plan(query), table=Table("query", (), Connector("print")), columns=())
    (found,) = (n for n in in_order(normalize(Job("query", (sink,))).sinks) if isinstance(n, TopN))
    return found


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("n <= 10", 1, 10),
        ("n < 10", 1, 9),
        ("10 >= n", 1, 10),
        ("n = 1", 1, 1),
        ("1 = n", 1, 1),
        ("n BETWEEN 2 AND 5", 2, 5),
        ("n > 1 AND n <= 5", 2, 5),
        ("n IN (3, 1)", 1, 3),
        ("n <= 5 AND id > 3 AND 3 > n", 1, 2),
        ("n <= 5 AND n <= id", 1, 5),
        ("n < 1", 1, 0),
    ],
)
def test_conditions_on_a_rank_bound_it(condition: str, first: int, last: int):
    found = top_n(f"SELECT who, id FROM {RANKED} WHERE {condition}")
    assert (found.first, found.last) == (first, last)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            f"SELECT who, id FROM {RANKED} WHERE n <= 3",
            """project who, id
  top 3 by (who) order by amount desc
    scan pay""",
        ),
        (
            f"SELECT who, id FROM {RANKED} WHERE n <= 3 AND id > 3",
            """project who, id
  filter (id > 3)
    top 3 by (who) order by amount desc
      scan pay""",
        ),
        (
            f"SELECT who, id FROM {RANKED} WHERE n <= 3 AND who = 'x'",
            """project who, id
  top 3 by (who) order by amount desc
    filter (who = CAST('x' AS STRING))
      scan pay""",
        ),
        (
            "SELECT who FROM pay QUALIFY RANK() OVER w <= 2 WINDOW w AS (ORDER BY amount + 1 NULLS LAST, who DESC)",
            """project who
  RANK 1 to 2 of all rows order by (amount + 1) nulls last, who desc
    project who, (amount + 1)
      scan pay""",
        ),
        (
            f"SELECT r.id FROM {RANKED} AS r JOIN ship ON r.id = ship.pay_id WHERE r.n = 1",
            """project r.id
  inner join id = CAST(ship.pay_id AS BIGINT)
    top 1 by (who) order by amount desc
      scan pay
    project CAST(ship.pay_id AS BIGINT)
      scan ship""",
        ),
        (
            "SELECT id, RANK() OVER w AS r, ROW_NUMBER() OVER w, DENSE_RANK() OVER w FROM pay QUALIFY r BETWEEN 2 AND 3"
            " WINDOW w AS (PARTITION BY who ORDER BY amount + 1)",
            """project id, RANK(), ROW_NUMBER(), DENSE_RANK()
  filter (RANK() BETWEEN 2 AND 3)
    DENSE_RANK 1 to 3 by (who) order by (amount + 1)
      top by (who) order by (amount + 1)
        RANK 1 to 3 by (who) order by (amount + 1)
          project who, id, (amount + 1)
            scan pay""",
        ),
        (
            "SELECT id, RANK() OVER w AS r, ROW_NUMBER() OVER w AS n FROM pay QUALIFY r <= 3 AND n <= 4 AND n <= 9"
            " WINDOW w AS (PARTITION BY who ORDER BY amount)",
            """project id, RANK(), ROW_NUMBER()
  RANK 1 to 3 by (who) order by amount
    top 4 by (who) order by amount
      scan pay""",
        ),
        (
            "SELECT id FROM item QUALIFY RANK() OVER (ORDER BY name) <= 3"
            " AND ROW_NUMBER() OVER (PARTITION BY name ORDER BY id DESC) = 1",
            """project id
  inner join id is id
    RANK 1 to 3 of all rows order by name
      normalize id
        scan item
    project id
      top 1 by (name) order by id desc
        normalize id
          scan item""",
        ),
        (
            "SELECT id, RANK() OVER w, ROW_NUMBER() OVER w FROM shelf WINDOW w AS (PARTITION BY name ORDER BY ts)",
            """project id, RANK(), ROW_NUMBER()
  over name on ts: RANK(*) range None, ROW_NUMBER(*) rows None
    normalize id
      scan shelf""",
        ),
        (
            "SELECT who FROM pay GROUP BY who QUALIFY ROW_NUMBER() OVER w <= 3 WINDOW w AS (ORDER BY SUM(amount) DESC)",
            """project who
  top 3 of all rows order by SUM(amount) desc
    group by who: SUM(amount)
      scan pay""",
        ),
        (
            "SELECT who FROM pay GROUP BY who, id QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY who) <= 3",
            """project who
  top 3 by (id) order by who
    group by who, id
      scan pay""",
        ),
        (
            "SELECT who, SUM(amount) AS amount FROM pay GROUP BY who HAVING COUNT(*) > 1"
            " QUALIFY RANK() OVER (ORDER BY amount DESC) <= 3 AND MAX(amount) > 5",
            """project who, SUM(amount)
  filter (MAX(amount) > 5)
    RANK 1 to 3 of all rows order by SUM(amount) desc
      filter (COUNT(*) > 1)
        group by who: SUM(amount), MAX(amount), COUNT(*)
          scan pay""",
        ),
        (
            "SELECT id, who, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM pay)"
            " WHERE n = 1",
            """project id, who, ts
  top 1 by (id) order by ts desc, the latest first
    scan pay""",
        ),
        (
            "SELECT id, who FROM pay QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) <= 2",
            """project id, who
  top 2 by (id) order by ts desc
    scan pay""",
        ),
    ],
)
def test_a_rank_becomes_a_top_n_under_its_bound(query: str, expected: str):
    assert normalized(query) == expected


def test_one_view_may_be_read_with_several_bounds():
    text = normalized(f"SELECT id FROM {RANKED} WHERE n <= 3 UNION ALL SELECT id FROM {RANKED} WHERE n = 5")
    assert [line.split(" by")[0].strip() for line in text.splitlines() if "top" in line] == ["top 3", "top 5 to 5"]


def test_the_first_row_by_time_is_numbered_as_time_passes():
    assert "over who on ts" in normalized(
        "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts) AS n FROM pay) WHERE n = 1"
    )


NEEDS_A_BOUND = (
    "{0} in this order needs a bound\n  detail: each new row would change the rank of all rows behind it\n"
    "  hint:   keep the first rows: SELECT ... FROM (SELECT *, {0}() OVER (...) AS n FROM ...) WHERE n <= 10"
)


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (f"SELECT id FROM {RANKED}", NEEDS_A_BOUND.format("ROW_NUMBER")),
        (f"SELECT id FROM {RANKED} WHERE n > 3", NEEDS_A_BOUND.format("ROW_NUMBER")),
        (f"SELECT id FROM {RANKED} WHERE n <= 99999999999999999999", NEEDS_A_BOUND.format("ROW_NUMBER")),
        (f"SELECT id FROM {RANKED} WHERE n <= id", NEEDS_A_BOUND.format("ROW_NUMBER")),
        ("SELECT RANK() OVER (ORDER BY id) FROM pay", NEEDS_A_BOUND.format("RANK")),
        ("SELECT DENSE_RANK() OVER (PARTITION BY id) FROM pay", "DENSE_RANK needs ORDER BY"),
        (
            "SELECT RANK() OVER w, ROW_NUMBER() OVER w FROM pay WINDOW w AS (ORDER BY id)",
            NEEDS_A_BOUND.format("RANK"),
        ),
        (
            "SELECT id FROM item QUALIFY RANK() OVER (ORDER BY name) <= 3 OR RANK() OVER (ORDER BY name DESC) <= 3",
            NEEDS_A_BOUND.format("RANK"),
        ),
        (
            "SELECT id FROM pay QUALIFY RANK() OVER (ORDER BY who) <= 3 AND RANK() OVER (ORDER BY who DESC) <= 3",
            "rows that are ranked in several orders need a key, which tells each from all others\n"
            "  detail: a row is shown with all its ranks, of which each is known apart\n"
            "  hint:   declare PRIMARY KEY (...) NOT ENFORCED in CREATE TABLE, or rank what is grouped by a key",
        ),
        (
            "SELECT who FROM pay GROUP BY who QUALIFY ROW_NUMBER() OVER (ORDER BY amount) = 1",
            'column "amount" is neither grouped by nor aggregated\n  detail: the query groups by who\n'
            "  hint:   add amount to GROUP BY, or take MAX(amount)",
        ),
        (
            "SELECT who FROM pay GROUP BY who QUALIFY ROW_NUMBER() OVER v = 1 WINDOW w AS (ORDER BY COUNT(*))",
            'window "v" does not exist\n  detail: WINDOW declares w',
        ),
        (
            "SELECT who FROM pay GROUP BY who QUALIFY COUNT(*) > 3",
            "QUALIFY without an OVER call\n  hint:   write HAVING",
        ),
        ("SELECT id FROM pay QUALIFY id > 3", "QUALIFY without an OVER call\n  hint:   write WHERE"),
        (
            "SELECT id FROM pay QUALIFY ROW_NUMBER() OVER (ORDER BY amuont) = 1",
            'column "amuont" does not exist in "pay"\n'
            '  detail: pay has the columns who, amount, id, ts, at\n  hint:   did you mean "amount"?',
        ),
    ],
)
def test_a_wrong_rank_is_refused_with_a_reason(query: str, mistake: str):
    assert mistakes(query) == [mistake]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT who, id FROM pay ORDER BY amount DESC, 2 LIMIT 3 OFFSET 2",
            """project who, id
  top 3 to 5 of all rows order by amount desc, id
    project who, id, amount
      scan pay""",
        ),
        ("SELECT id FROM pay FETCH FIRST 2 ROWS ONLY", "limit 2\n  project id\n    scan pay"),
        ("SELECT id FROM pay LIMIT ALL", "project id\n  scan pay"),
        (
            "SELECT who AS w FROM pay GROUP BY who ORDER BY COUNT(*) DESC, w LIMIT 3",
            """project w
  top 3 of all rows order by COUNT(*) desc, w
    project who, COUNT(*)
      group by who: COUNT(*)
        project who
          scan pay""",
        ),
        (
            "SELECT id AS x FROM pay UNION ALL SELECT id FROM item ORDER BY x LIMIT 3",
            """top 3 of all rows order by x
  union
    project id
      scan pay
    project id
      normalize id
        scan item""",
        ),
        (
            "SELECT id FROM pay ORDER BY ts, who DESC",
            """project id
  sort by ts, who desc
    project id, ts, who
      scan pay""",
        ),
    ],
)
def test_order_and_limit(query: str, expected: str):
    assert outline(plan(query)) == expected


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            "SELECT id FROM pay ORDER BY id",
            "ORDER BY without LIMIT needs a time attribute, ascending, as its first column\n"
            "  detail: a stream has no end to sort up to\n"
            "  hint:   add LIMIT, or order by the time attribute of the table",
        ),
        (
            "SELECT DISTINCT id FROM pay ORDER BY who LIMIT 3",
            "ORDER BY of SELECT DISTINCT names a column that is not selected",
        ),
        ("SELECT id FROM pay ORDER BY 2 LIMIT 3", "ORDER BY 2 names no column: the query has 1"),
        ("SELECT id FROM pay OFFSET 3", "OFFSET needs LIMIT\n  detail: a stream has no end\n  hint:   add LIMIT"),
        *(
            (
                f"SELECT id FROM pay WHERE EXISTS (SELECT 1 FROM a {tied}OFFSET 5)",
                "OFFSET needs LIMIT\n  detail: a stream has no end\n  hint:   add LIMIT",
            )
            for tied in ("", "WHERE a1 = id ")
        ),
        ("SELECT id FROM pay LIMIT 'x'", "LIMIT takes a whole number up to 2147483647"),
        ("SELECT id FROM pay LIMIT 9999999999", "LIMIT takes a whole number up to 2147483647"),
        (
            "SELECT id FROM pay UNION ALL SELECT a1 FROM a ORDER BY who LIMIT 1",
            "ORDER BY names no column of the query\n  detail: it has the columns id",
        ),
        (
            "SELECT id, ts FROM pay LEFT JOIN a ON id = a1 ORDER BY ts",
            "ORDER BY without LIMIT needs a time attribute, ascending, as its first column\n"
            "  detail: a stream has no end to sort up to\n"
            "  hint:   add LIMIT, or order by the time attribute of the table",
        ),
    ],
)
def test_a_wrong_order_or_limit_is_refused_with_a_reason(query: str, mistake: str):
    assert mistakes(query) == [mistake]
