"""Times and windows behind DISTINCT, GROUP BY and set operations: where a query may go by them again, and where not."""

from __future__ import annotations

import pytest

from service.plan.nodes import Mode
from service.plan.passes import normalize
from service.plan.properties import mode
from tests.sql.outline import columns, mistakes, outline, plan, shown

TUMBLED = "TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
WINDOWED = "SELECT who, window_start AS s, window_end AS e FROM TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"

KEPT = [
    "SELECT DISTINCT who, ts FROM pay",
    "SELECT ts AS ts, who, COUNT(*) AS n FROM pay GROUP BY who, ts",
    "SELECT ts, who, COUNT(*) AS n FROM pay GROUP BY ts, ROLLUP (who)",
    "SELECT who, ts FROM pay UNION SELECT port, ts FROM ship",
    "SELECT who, ts FROM pay INTERSECT SELECT port, ts FROM ship",
    "SELECT who, ts FROM pay EXCEPT ALL SELECT port, ts FROM ship",
    "SELECT who, ts FROM (SELECT DISTINCT who, ts FROM pay) WHERE who > 'a'",
    "SELECT who, ts FROM (SELECT DISTINCT who, ts FROM pay) UNION ALL SELECT port, ts FROM ship",
]


@pytest.mark.parametrize("view", KEPT)
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT window_start, COUNT(*) FROM {TUMBLED} GROUP BY window_start, window_end",
        f"SELECT who, window_end FROM {TUMBLED}",
        "SELECT HOP_END(ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE) FROM v"
        " GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)",
        "SELECT COUNT(*) OVER (PARTITION BY who ORDER BY ts) FROM v",
        "SELECT COUNT(*) OVER w, LAG(who) OVER w FROM v WINDOW w AS (ORDER BY ts)",
        "SELECT who FROM v ORDER BY ts",
        "SELECT v.who FROM v JOIN shelf FOR SYSTEM_TIME AS OF v.ts AS s ON s.id = CHAR_LENGTH(v.who)",
    ],
)
def test_a_time_that_is_a_key_of_groups_is_a_time_attribute_where_one_is_needed(view: str, query: str):
    assert mistakes(query, f"CREATE VIEW v AS {view};") == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("SUM(COUNT(*)) OVER (PARTITION BY who ORDER BY ts)", "over who on ts: SUM(COUNT(*)) range None"),
        ("LAG(who) OVER (ORDER BY ts)", "over nothing on ts: LAG(who) rows None"),
    ],
)
def test_a_time_that_is_grouped_by_orders_the_groups(call: str, expected: str):
    found = outline(plan(f"SELECT ts, who, {call} FROM pay GROUP BY who, ts"))
    assert [line.strip() for line in found.splitlines() if "over" in line] == [expected]


def test_a_time_that_is_not_gone_by_is_a_plain_column():
    assert columns(plan("SELECT DISTINCT who, ts FROM pay")) == "who STRING!, ts TIMESTAMP(3)"


BEHIND = [
    "SELECT who, p.`at` AS t FROM pay AS p JOIN ship ON id = pay_id",
    "SELECT p.who, p.t FROM (SELECT who, id, `at` AS t FROM pay) AS p JOIN a ON id = a1 JOIN b ON a2 = b1",
    "SELECT who, `at` AS t FROM pay WHERE id IN (SELECT pay_id FROM ship)",
    "SELECT who, `at` AS t FROM pay WHERE EXISTS (SELECT * FROM ship WHERE pay_id = id AND port = who)",
    "SELECT who, `at` AS t FROM HOP(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '2' DAY)",
    "SELECT who, `at` AS t FROM TUMBLE(TABLE pay, DESCRIPTOR(`at`), INTERVAL '1' DAY)",
    "SELECT who, `at` AS t FROM SESSION(TABLE pay PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' DAY)",
    "SELECT who, `at` AS t FROM pay GROUP BY COUNTWINDOW(3)",
    "SELECT who, t FROM (SELECT who, `at` AS t, LEAD(id) OVER (PARTITION BY who ORDER BY ts) AS n FROM pay)",
    "SELECT who, t FROM (SELECT who, `at` AS t, SUM(id) OVER (PARTITION BY who ORDER BY ts) AS n FROM pay)",
    "SELECT who, `at` AS t FROM pay ORDER BY ts",
    "SELECT who, `at` AS t FROM pay WHERE id IN (SELECT pay_id FROM ship) UNION ALL SELECT port, PROCTIME() FROM ship",
]


@pytest.mark.parametrize("view", BEHIND)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT window_start, COUNT(*) FROM TUMBLE(TABLE v, DESCRIPTOR(t), INTERVAL '1' MINUTE)"
        " GROUP BY window_start, window_end",
        "SELECT COUNT(*) FROM v GROUP BY TUMBLE(t, INTERVAL '1' MINUTE)",
        "SELECT COUNT(*) FROM v GROUP BY SLIDINGWINDOW(mi, 1)",
        "SELECT COUNT(*) OVER (PARTITION BY who ORDER BY t) FROM v",
        "SELECT v.who FROM v JOIN item FOR SYSTEM_TIME AS OF v.t AS i ON i.id = CHAR_LENGTH(v.who)",
    ],
)
def test_a_processing_time_is_one_again_behind_what_holds_rows_back(view: str, query: str):
    assert mistakes(query, f"CREATE VIEW v AS {view};") == []


@pytest.mark.parametrize(
    ("view", "holds"),
    [
        (BEHIND[0], True),
        (BEHIND[9], True),
        (BEHIND[10], True),
        ("SELECT who, `at` AS t, SUM(id) OVER (PARTITION BY who ORDER BY `at`) AS n FROM pay", False),
        ("SELECT who, `at` AS t FROM pay UNION ALL SELECT port, PROCTIME() FROM ship", False),
    ],
)
def test_a_processing_time_is_that_at_which_rows_come_out(view: str, holds: bool):
    found = outline(plan("SELECT COUNT(*) FROM v GROUP BY TUMBLE(t, INTERVAL '1' MINUTE)", f"CREATE VIEW v AS {view};"))
    behind = found[: found.index("scan pay")].splitlines()
    assert any("PROCTIME()" in line for line in behind[2:]) is holds


def test_a_condition_on_the_time_at_which_rows_come_out_is_not_asked_before():
    held = "SELECT who, `at` AS t, COUNT(*) OVER (PARTITION BY who ORDER BY ts) AS n FROM pay"
    found = shown(f"SELECT n FROM ({held}) WHERE CONCAT(who, CAST(t AS STRING)) > 'a' AND n > 1", normalize)
    assert found.index("PROCTIME()") < found.index("over who on ts") < found.index("scan pay")
    before = shown(f"SELECT n FROM ({held}) WHERE who > 'a' AND n > 1", normalize)
    assert before.index("over who on ts") < before.index("filter (who > ")


NO_TIME = (
    'the window TUMBLE needs a time attribute, and "ts" is none\n'
    "  detail: a time attribute is declared with its table, and lost in a regular join, a window, an aggregate or an"
    " expression\n"
    "  hint:   declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in CREATE TABLE, or proctime AS PROCTIME()"
)


@pytest.mark.parametrize(
    "view",
    [
        "SELECT who, MAX(ts) AS ts FROM pay GROUP BY who",
        "SELECT DISTINCT who, ts + INTERVAL '1' SECOND AS ts FROM pay",
        "SELECT DISTINCT who, p.ts FROM pay AS p JOIN ship ON id = pay_id",
        "SELECT who, p.ts FROM (SELECT DISTINCT who, id, ts FROM pay) AS p JOIN a ON p.id = a1",
        "SELECT p.who, p.ts FROM a LEFT JOIN (SELECT DISTINCT who, id, ts FROM pay) AS p ON p.id = a1",
        "SELECT who, ts, COUNT(*) FROM pay GROUP BY CUBE (who, ts)",
        "SELECT who, ts FROM TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' DAY)"
        " GROUP BY who, ts, window_start, window_end",
        "SELECT who, ts FROM TUMBLE(DATA => (SELECT DISTINCT who, ts FROM pay), TIMECOL => DESCRIPTOR(ts),"
        " SIZE => INTERVAL '1' DAY)",
        "SELECT who, ts, LEAD(ts) OVER (PARTITION BY who ORDER BY ts) FROM (SELECT DISTINCT who, ts FROM pay)",
        "SELECT DISTINCT who, `at` AS ts FROM pay",
    ],
)
def test_a_time_whose_rows_come_in_another_order_is_none(view: str):
    names = "(who, ts)" if "LEAD" not in view and "COUNT" not in view else "(who, ts, n)"
    query = f"SELECT COUNT(*) FROM {TUMBLED} GROUP BY window_start, window_end"
    assert mistakes(query, f"CREATE VIEW v {names} AS {view};") == [NO_TIME]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT DISTINCT who, s, e FROM ({WINDOWED})", Mode.APPEND),
        (f"{WINDOWED} UNION {WINDOWED}", Mode.APPEND),
        (f"SELECT DISTINCT who, s FROM ({WINDOWED})", Mode.RETRACT),
        (f"SELECT s, COUNT(*) FROM ({WINDOWED} UNION ALL SELECT port, ts, ts FROM ship) GROUP BY s, e", Mode.RETRACT),
        (
            f"SELECT s, COUNT(*) FROM ({WINDOWED} UNION ALL SELECT who, e, s FROM ({WINDOWED})) GROUP BY s, e",
            Mode.RETRACT,
        ),
    ],
)
def test_windows_are_answered_when_they_close_where_every_query_has_them(query: str, expected: Mode):
    assert mode(plan(query)) is expected


def test_windows_of_processing_time_that_are_retracted_are_grouped_at_once():
    early = "SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '0 s';"
    counted = (
        "SELECT who, window_start AS s, window_end AS e, COUNT(*) AS n"
        " FROM TUMBLE(TABLE pay, DESCRIPTOR(`at`), INTERVAL '1' MINUTE) GROUP BY who, window_start, window_end"
    )
    assert mistakes(f"SELECT DISTINCT who, s, e FROM ({counted})", early) == []
    assert mistakes(f"SELECT s, SUM(n) FROM ({counted} UNION ALL {counted}) GROUP BY s, e", early) == []
