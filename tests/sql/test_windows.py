"""Windows that group, as table functions and in GROUP BY, and what they are aggregated with."""

from __future__ import annotations

import pytest

from service.plan.canonical import canonical
from service.plan.nodes import Union
from service.plan.passes import normalize
from service.plan.state_bounds import kept
from service.plan.validate.cautions import warnings
from service.plan.walk import in_order
from service.sql.pipeline import read
from tests.sql.outline import TABLES, columns, outline, plan, resolved

CASES = [
    (
        """SELECT window_start, window_end, who, SUM(amount) AS s FROM TABLE(TUMBLE(TABLE pay,
DESCRIPTOR(ts), INTERVAL '10' MINUTES)) WHERE id > 0 GROUP BY window_start, window_end, who""",
        """
project window_start, window_end, who, s
  project window_start, window_end, who, SUM(amount), window_time
    Tumble(size=600000, offset=0) on ts in UTC by who: SUM(amount)
      project who, amount, ts
        filter (id > 0)
          scan pay
""",
        "window_start TIMESTAMP(3)!, window_end TIMESTAMP(3)!, who STRING!, s DECIMAL(38, 2)",
    ),
    (
        """SELECT COUNT(*) AS n FROM TABLE(HOP(DATA => TABLE pay, TIMECOL => DESCRIPTOR(ts), SLIDE =>
INTERVAL '5' MINUTES, SIZE => INTERVAL '10' MINUTES, OFFSET => INTERVAL '1' MINUTE)) GROUP BY
window_start, window_end""",
        """
project COUNT(*)
  Hop(size=600000, slide=300000, offset=60000) on ts in UTC by nothing: COUNT(*)
    project ts
      scan pay
""",
        "n BIGINT!",
    ),
    (
        """SELECT window_time, COUNT(*) AS n FROM CUMULATE(TABLE pay, DESCRIPTOR(ts), INTERVAL '2' MINUTES,
INTERVAL '10' MINUTES) GROUP BY window_start, window_end, window_time""",
        """
project window_time, COUNT(*)
  Cumulate(size=600000, step=120000, offset=0) on ts in UTC by nothing: COUNT(*)
    project ts
      scan pay
""",
        "window_time TIMESTAMP(3)! *event, n BIGINT!",
    ),
    (
        """SELECT window_start, window_end, who, COUNT(*) AS n FROM SESSION(TABLE pay PARTITION BY who,
DESCRIPTOR(ts), INTERVAL '10' MINUTES) GROUP BY who, window_start, window_end""",
        """
project window_start, window_end, who, n
  project window_start, window_end, who, COUNT(*), window_time
    Session(gap=600000, partition=(), numbered=False) on ts in UTC by who: COUNT(*)
      project who, ts
        scan pay
""",
        "window_start TIMESTAMP(3)!, window_end TIMESTAMP(3)!, who STRING!, n BIGINT!",
    ),
    (
        """SELECT window_start, window_end, COUNT(*) AS n FROM SESSION(TABLE pay PARTITION BY who,
DESCRIPTOR(ts), INTERVAL '10' MINUTES) GROUP BY window_start, window_end""",
        """
project window_start, window_end, n
  project window_start, window_end, COUNT(*), window_time
    Attached(start=1, end=2) on window_time in UTC by nothing: COUNT(*)
      project window_time, window_start, window_end
        rows of Session(gap=600000, partition=(0,), numbered=False) on ts in UTC
          scan pay
""",
        "window_start TIMESTAMP(3)!, window_end TIMESTAMP(3)!, n BIGINT!",
    ),
    (
        """SELECT who, COUNT(*) AS n FROM SESSION(TABLE pay PARTITION BY who,
DESCRIPTOR(ts), INTERVAL '10' MINUTES) WHERE id > 0 GROUP BY who, window_start, window_end""",
        """
project who, COUNT(*)
  Attached(start=2, end=3) on window_time in UTC by who: COUNT(*)
    project who, window_time, window_start, window_end
      filter (id > 0)
        rows of Session(gap=600000, partition=(0,), numbered=False) on ts in UTC
          scan pay
""",
        "who STRING!, n BIGINT!",
    ),
    (
        """SELECT who, SESSION_START(at, INTERVAL '1' MINUTE) AS s, SESSION_PROCTIME(at, INTERVAL '1' MINUTE) AS p,
COUNT(*) AS n FROM pay GROUP BY who, SESSION(at, INTERVAL '1' MINUTE)""",
        """
project who, window_start, window_time, COUNT(*)
  Session(gap=60000, partition=(), numbered=False) on at in UTC by who: COUNT(*)
    project who, at
      scan pay
""",
        "who STRING!, s TIMESTAMP(3)!, p TIMESTAMP_LTZ(3)! *processing, n BIGINT!",
    ),
    (
        """SELECT id, window_end FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE
window_start > TIMESTAMP '2020-01-01 00:00:00'""",
        """
project id, window_end
  filter (window_start > CAST(TIMESTAMP '2020-01-01 00:00:00' AS TIMESTAMP(3)))
    rows of Tumble(size=3600000, offset=0) on ts in UTC
      scan pay
""",
        "id BIGINT, window_end TIMESTAMP(3)!",
    ),
    (
        """SELECT who, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, TUMBLE_ROWTIME(ts, INTERVAL '10'
SECONDS) AS r, COUNT(*) AS n FROM pay GROUP BY TUMBLE(ts, INTERVAL '10' SECOND), who""",
        """
project who, window_start, window_time, COUNT(*)
  Tumble(size=10000, offset=0) on ts in UTC by who: COUNT(*)
    project who, ts
      scan pay
""",
        "who STRING!, s TIMESTAMP(3)!, r TIMESTAMP(3)! *event, n BIGINT!",
    ),
    (
        """SELECT who, HOP_END(at, INTERVAL '5' SECOND, INTERVAL '1' MINUTE) AS e, COUNT(*) AS n FROM pay
GROUP BY who, HOP(at, INTERVAL '5' SECOND, INTERVAL '1' MINUTE)""",
        """
project who, window_end, COUNT(*)
  Hop(size=60000, slide=5000, offset=0) on at in UTC by who: COUNT(*)
    project who, at
      scan pay
""",
        "who STRING!, e TIMESTAMP(3)!, n BIGINT!",
    ),
    (
        """SELECT TUMBLE_END(r, INTERVAL '20' MINUTE) AS e, SUM(n) AS n FROM (SELECT TUMBLE_ROWTIME(ts,
INTERVAL '10' SECOND) AS r, COUNT(*) AS n FROM pay GROUP BY TUMBLE(ts, INTERVAL '10' SECOND),
who) GROUP BY TUMBLE(r, INTERVAL '20' MINUTE)""",
        """
project window_end, SUM(n)
  Tumble(size=1200000, offset=0) on r in UTC by nothing: SUM(n)
    project n, r
      project window_time, COUNT(*)
        Tumble(size=10000, offset=0) on ts in UTC by who: COUNT(*)
          project who, ts
            scan pay
""",
        "e TIMESTAMP(3)!, n BIGINT",
    ),
    (
        """SELECT window_start, window_end, MAX(s) AS top FROM (SELECT window_start, window_end, who,
SUM(amount) AS s FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY
window_start, window_end, who) GROUP BY window_start, window_end""",
        """
project window_start, window_end, top
  project window_start, window_end, MAX(s), window_time
    Attached(start=2, end=3) on window_time in UTC by nothing: MAX(s)
      project s, window_time, window_start, window_end
        project window_start, window_end, who, SUM(amount), window_time
          Tumble(size=600000, offset=0) on ts in UTC by who: SUM(amount)
            project who, amount, ts
              scan pay
""",
        "window_start TIMESTAMP(3)!, window_end TIMESTAMP(3)!, top DECIMAL(38, 2)",
    ),
    (
        """SELECT MAX(window_end) AS m FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end""",
        """
project MAX(window_end)
  Attached(start=2, end=0) on window_time in UTC by nothing: MAX(window_end)
    project window_end, window_time, window_start
      rows of Tumble(size=600000, offset=0) on ts in UTC
        scan pay
""",
        "m TIMESTAMP(3)",
    ),
]


@pytest.mark.parametrize(("query", "nodes", "shape"), CASES)
def test_a_window_resolves(query: str, nodes: str, shape: str):
    found = plan(query)
    assert outline(found) == nodes.strip("\n")
    assert columns(found) == shape


SESSION = "SESSION(TABLE pay PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' HOUR)"

KEPT = {
    f"SELECT who, COUNT(*) FROM {SESSION} GROUP BY who, window_start, window_end": (
        "the totals of each open window and key",
        "the watermark passes the last row by 1 h",
    ),
    f"SELECT id, window_end FROM {SESSION}": (
        "the rows of open sessions",
        "the watermark passes the last row by 1 h",
    ),
    "SELECT who, COUNT(*) FROM pay GROUP BY who, SESSION(at, INTERVAL '1' MINUTE)": (
        "the totals of each open window and key",
        "the clock passes the last row by 1 min",
    ),
}


@pytest.mark.parametrize("query", KEPT)
def test_sessions_say_what_they_keep_and_until_when(query: str):
    assert [tuple(state) for node in in_order([plan(query)]) for state in kept(node)] == [KEPT[query]]


def test_sessions_of_the_whole_stream_are_warned_of():
    (job,) = read(f"{TABLES}\nEXPLAIN SELECT * FROM {SESSION.replace(' PARTITION BY who', '')}").explains
    assert [w.primary for w in warnings(job)] == [
        "these sessions are of the whole stream: all its rows go to one shard"
    ]


SESSION_VIEW = "\nCREATE VIEW big AS SELECT * FROM pay WHERE amount > 1;"
BIG = "(SELECT * FROM pay WHERE amount > 1)"


@pytest.mark.parametrize(
    ("arguments", "over_a_view"),
    [
        (f"{BIG} PARTITION BY who, DESCRIPTOR(ts)", "TABLE big PARTITION BY who, DESCRIPTOR(ts)"),
        (f"TABLE {BIG} PARTITION BY who, DESCRIPTOR(ts)", "TABLE big PARTITION BY who, DESCRIPTOR(ts)"),
        (f"{BIG} PARTITION BY (who, id), DESCRIPTOR(ts)", "TABLE big PARTITION BY (who, id), DESCRIPTOR(ts)"),
        (f"DATA => {BIG} PARTITION BY who, TIMECOL => DESCRIPTOR(ts)", "TABLE big PARTITION BY who, DESCRIPTOR(ts)"),
        (f"{BIG}, DESCRIPTOR(ts)", "TABLE big, DESCRIPTOR(ts)"),
        (
            "(SELECT * FROM pay UNION ALL SELECT * FROM pay) PARTITION BY who, DESCRIPTOR(ts)",
            "TABLE (SELECT * FROM pay UNION ALL SELECT * FROM pay) PARTITION BY who, DESCRIPTOR(ts)",
        ),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, window_start, window_end FROM TABLE(SESSION({}))",
        "SELECT who, COUNT(*) FROM TABLE(SESSION({})) GROUP BY who, window_start, window_end",
    ],
)
def test_sessions_of_a_query_answer_as_those_of_a_view(query: str, arguments: str, over_a_view: str):
    gap = "GAP => INTERVAL '1' HOUR" if "=>" in arguments else "INTERVAL '1' HOUR"
    found = resolved(query.format(f"{arguments}, {gap}"))
    expected = resolved(query.format(f"{over_a_view}, INTERVAL '1' HOUR"), SESSION_VIEW)
    assert canonical(normalize(found).sinks) == canonical(normalize(expected).sinks)


def test_a_length_of_a_window_may_stand_in_parentheses():
    assert plan("SELECT id FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), (INTERVAL '1' HOUR)))")


def test_grouping_sets_are_copies_of_the_rows_with_a_number():
    found = plan("SELECT who, COUNT(*) AS n, GROUPING(who) AS g FROM pay GROUP BY ROLLUP (who)")
    unions = [node for node in in_order([found]) if isinstance(node, Union)]
    assert [len(union.inputs) for union in unions] == [2]
    assert columns(found) == "who STRING, n BIGINT!, g BIGINT"
