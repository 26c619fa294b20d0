"""OVER windows: one node for each PARTITION BY, frames and calls beside each other."""

from __future__ import annotations

import pytest

from tests.sql.outline import columns, mistakes, outline, plan

CASES = [
    (
        """SELECT who, MAX(amount) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT
ROW) AS m FROM pay""",
        """
project who, MAX(amount)
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
]


@pytest.mark.parametrize(("query", "nodes", "shape"), CASES)
def test_an_over_window_resolves(query: str, nodes: str, shape: str):
    found = plan(query)
    assert outline(found) == nodes.strip("\n")
    assert columns(found) == shape


@pytest.mark.parametrize(
    ("call", "mistake"),
    [
        ("LAG(id, 99999999999999999999)", "LAG takes a whole number of rows up to 2147483647"),
        (
            "NTILE(4)",
            "NTILE needs all rows of its partition, which a stream never has\n"
            "  hint:   ROW_NUMBER, RANK and DENSE_RANK need those before a row alone",
        ),
    ],
)
def test_calls_that_no_stream_can_answer_or_of_wrong_types_are_refused(call: str, mistake: str):
    assert mistakes(f"SELECT {call} OVER (ORDER BY ts) FROM pay") == [mistake]


@pytest.mark.parametrize("default", ["-1", "NULL", "3000000000", "CAST(7 AS SMALLINT)"])
def test_a_default_of_lag_has_a_type_that_fits(default: str):
    assert mistakes(f"SELECT LAG(id, 1, {default}) OVER (ORDER BY ts) FROM pay") in (
        [],
        ["the number of rows and the default of LAG are constants"],
    )


def test_a_frame_of_too_many_rows_is_refused():
    frame = "ROWS BETWEEN 99999999999999999999 PRECEDING AND CURRENT ROW"
    query = f"SELECT SUM(id) OVER (ORDER BY ts {frame}) FROM pay"
    assert mistakes(query) == ["ROWS takes at most 2147483647 rows"]
