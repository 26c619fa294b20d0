"""OVER windows: one node for each PARTITION BY, frames and calls beside each other."""

from __future__ import annotations

import pytest

from service.plan.passes.push_filters import push_filters
from tests.sql.outline import columns, mistakes, outline, plan, shown

CASES = [
    (
        """SELECT who, MAX(amount) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT
ROW) AS m FROM pay""",
        """
project who, MAX(amount)
  project who, amount, id, ts, PROCTIME(), MAX(amount)
    over who on ts: MAX(amount) rows 2
      scan pay
""",
        "who STRING!, m DECIMAL(10, 2)",
    ),
    (
        """SELECT COUNT(*) OVER w AS n, SUM(id + 1) OVER w AS s, MIN(id) OVER (ORDER BY ts) AS low FROM pay
WINDOW w AS (PARTITION BY who ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND
CURRENT ROW)""",
        """
project COUNT(*), SUM((id + 1)), MIN(id)
  project who, amount, id, ts, PROCTIME(), (id + 1), COUNT(*), SUM((id + 1)), MIN(id)
    over nothing on ts: MIN(id) range None
      over who on ts: COUNT(*) range 2000, SUM((id + 1)) range 2000
        project who, amount, id, ts, at, (id + 1)
          scan pay
""",
        "n BIGINT!, s BIGINT, low BIGINT",
    ),
    (
        """SELECT id, ROW_NUMBER() OVER (PARTITION BY who ORDER BY at) AS n, LAG(id, 2) OVER (PARTITION BY
who ORDER BY at) AS l FROM pay""",
        """
project id, ROW_NUMBER(*), LAG(id)
  over who on at: ROW_NUMBER(*) rows None, LAG(id) rows None
    scan pay
""",
        "id BIGINT, n BIGINT!, l BIGINT",
    ),
    (
        """SELECT who, SUM(COUNT(*)) OVER (ORDER BY window_time) AS running FROM TABLE(TUMBLE(TABLE pay,
DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, window_time, who""",
        """
project who, SUM(COUNT(*))
  over nothing on window_time: SUM(COUNT(*)) range None
    Tumble(size=3600000, offset=0) on ts in UTC by who: COUNT(*)
      project who, ts
        scan pay
""",
        "who STRING!, running BIGINT",
    ),
    (
        """SELECT id, LEAD(id, 2, 0) OVER w AS next, SUM(id) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN 1 PRECEDING
AND 3 FOLLOWING) AS s, MIN(id) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND INTERVAL '2' SECOND
FOLLOWING) AS near, MAX(id) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS before, ts
FROM pay WINDOW w AS (PARTITION BY who ORDER BY ts)""",
        """
project id, LEAD(id), SUM(id), MIN(id), MAX(id), ts
  over who on ts: LEAD(id) rows None, SUM(id) rows 1 to 3
    over nothing on ts: MIN(id) range 5000 to 2000
      over nothing on ts: MAX(id) rows 3 to -1
        scan pay
""",
        "id BIGINT, next BIGINT, s BIGINT, near BIGINT, before BIGINT, ts TIMESTAMP(3)",
    ),
    (
        """SELECT RANK() OVER w AS r, DENSE_RANK() OVER w AS d, NTH_VALUE(id, 2) OVER w AS second,
COUNT(DISTINCT id) OVER w AS n FROM pay WINDOW w AS (PARTITION BY who ORDER BY ts)""",
        """
project RANK(*), DENSE_RANK(*), NTH_VALUE(id), COUNT(id)
  project who, amount, id, ts, PROCTIME(), RANK(*), DENSE_RANK(*), NTH_VALUE(id), COUNT(id)
    over who on ts: RANK(*) range None, DENSE_RANK(*) range None, NTH_VALUE(id) range None, \
COUNT(DISTINCT id) range None
      scan pay
""",
        "r BIGINT!, d BIGINT!, second BIGINT, n BIGINT!",
    ),
    (
        """SELECT ts, COUNT(*) OVER (ORDER BY ts RANGE BETWEEN CURRENT ROW AND INTERVAL '2' SECOND FOLLOWING) AS n
FROM pay""",
        """
project ts, COUNT(*)
  project who, amount, id, ts, PROCTIME(), COUNT(*)
    over nothing on ts: COUNT(*) range 0 to 2000
      scan pay
""",
        "ts TIMESTAMP(3) *event, n BIGINT!",
    ),
]


@pytest.mark.parametrize(("query", "nodes", "shape"), CASES)
def test_an_over_window_resolves(query: str, nodes: str, shape: str):
    found = plan(query)
    assert outline(found) == nodes.strip("\n")
    assert columns(found) == shape


@pytest.mark.parametrize(
    ("call", "mistake"),
    [
        (
            "LAG(id, 99999999999999999999)",
            "LAG takes a whole number of rows up to 2147483647\n  detail: it is 99999999999999999999",
        ),
        (
            "NTILE(4)",
            "NTILE needs all rows of its partition, which a stream never has\n"
            "  hint:   PARTITION BY window_start, window_end of a window, which has them when it closes",
        ),
    ],
)
def test_calls_that_no_stream_can_answer_or_of_wrong_types_are_refused(call: str, mistake: str):
    assert mistakes(f"SELECT {call} OVER (ORDER BY ts) FROM pay") == [mistake]


def test_what_needs_all_rows_of_a_partition_is_answered_for_windows():
    found = plan(
        """SELECT id, NTILE(4) OVER w AS n, PERCENT_RANK() OVER w AS p, CUME_DIST() OVER w AS c FROM TABLE(TUMBLE(
TABLE pay, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WINDOW w AS (PARTITION BY window_start, window_end ORDER BY amount)"""
    )
    assert columns(found) == "id BIGINT, n BIGINT!, p DOUBLE!, c DOUBLE!"


@pytest.mark.parametrize("buckets", ["", "0", "id", "1, 2"])
def test_the_number_of_buckets_is_a_constant(buckets: str):
    query = f"""SELECT NTILE({buckets}) OVER (PARTITION BY window_start, window_end ORDER BY amount)
FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' HOUR))"""
    assert mistakes(query) == ["NTILE takes a whole number of buckets, from 1 to 2147483647"]


@pytest.mark.parametrize(
    ("call", "mistake"),
    [
        ("NTH_VALUE(id)", "NTH_VALUE takes a value and the number of a row"),
        ("NTH_VALUE(id, 0)", "NTH_VALUE takes a whole number of a row, from 1 to 2147483647"),
        ("NTH_VALUE(id, id)", "NTH_VALUE takes a whole number of a row, from 1 to 2147483647"),
    ],
)
def test_the_number_of_nth_value_is_a_constant(call: str, mistake: str):
    assert mistakes(f"SELECT {call} OVER (ORDER BY ts) FROM pay") == [mistake]


@pytest.mark.parametrize("default", ["-1", "NULL", "3000000000", "CAST(7 AS SMALLINT)"])
def test_a_default_of_lag_has_a_type_that_fits(default: str):
    assert mistakes(f"SELECT LAG(id, 1, {default}) OVER (ORDER BY ts) FROM pay") in (
        [],
        ["the number of rows and the default of LAG are constants"],
    )


@pytest.mark.parametrize(
    ("frame", "mistake"),
    [
        (
            "ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
            "a frame ends at the current row, or a number of rows",
        ),
        (
            "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
            "a frame of all rows ends at the current row",
        ),
        ("ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING", "the frame ends before it starts"),
        ("ROWS BETWEEN 2 FOLLOWING AND CURRENT ROW", "the frame ends before it starts"),
        ("ROWS BETWEEN UNBOUNDED FOLLOWING AND 2 FOLLOWING", "a frame cannot start with UNBOUNDED FOLLOWING"),
    ],
)
def test_a_frame_that_has_no_end_or_no_rows_is_refused(frame: str, mistake: str):
    (found,) = mistakes(f"SELECT SUM(id) OVER (ORDER BY ts {frame}) FROM pay")
    assert found.startswith(mistake)


def test_windows_that_wait_for_rows_of_different_partitions_are_answered_apart_and_joined():
    found = plan(
        """SELECT id, LEAD(id) OVER (PARTITION BY who ORDER BY ts) AS a, LEAD(id) OVER (ORDER BY ts) AS b,
COUNT(*) OVER (ORDER BY ts) AS n FROM pay WHERE id > 0"""
    )
    assert columns(found) == "id BIGINT, a BIGINT, b BIGINT, n BIGINT!"
    assert (
        outline(found)
        == """project id, LEAD(id), LEAD(id), COUNT(*)
  pair join by (who, ts, ROW_NUMBER(*))
    over who on ts: LEAD(id) rows None
      over who on ts: ROW_NUMBER(*) rows None
        over nothing on ts: COUNT(*) range None
          filter (id > 0)
            scan pay
    project who, ts, ROW_NUMBER(*), LEAD(id)
      over nothing on ts: LEAD(id) rows None
        over who on ts: ROW_NUMBER(*) rows None
          over nothing on ts: COUNT(*) range None
            filter (id > 0)
              scan pay"""
    )


def test_no_filter_goes_below_the_join_of_answers():
    query = """SELECT * FROM (SELECT who, LEAD(id) OVER (PARTITION BY who ORDER BY ts) AS a,
LEAD(id) OVER (ORDER BY ts) AS b FROM pay) WHERE who = 'ann'"""
    assert "filter" in shown(query, push_filters).split("pair join")[0]


@pytest.mark.parametrize("function", ["ROW_NUMBER", "RANK", "DENSE_RANK"])
def test_ranks_by_processing_time_are_answered_at_once(function: str):
    table = "CREATE TABLE c (k INT, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'c', 'format' = 'json');"
    found = plan(f"SELECT {function}() OVER (PARTITION BY k ORDER BY pt) AS n FROM c", table)
    assert "over k on pt" in outline(found)


def test_what_has_waited_for_other_rows_has_no_time_attribute_any_more():
    query = "SELECT *, LEAD(id) OVER (ORDER BY ts) AS n FROM pay"
    (found,) = mistakes(f"SELECT SUM(n) OVER (ORDER BY ts) FROM ({query})")
    assert "ts" in found
    assert "time attribute" in found


def test_a_frame_of_too_many_rows_is_refused():
    frame = "ROWS BETWEEN 99999999999999999999 PRECEDING AND CURRENT ROW"
    query = f"SELECT SUM(id) OVER (ORDER BY ts {frame}) FROM pay"
    assert mistakes(query) == ["ROWS takes at most 2147483647 rows"]
