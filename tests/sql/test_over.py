"""OVER windows: one node for each PARTITION BY, frames and calls beside each other."""

from __future__ import annotations

import pytest

from tests.sql.outline import columns, outline, plan

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
