"""eKuiper's windows: their forms, which rows they are about, which time they follow, and what cannot be."""

from __future__ import annotations

import pytest

from tests.sql.outline import columns, mistakes, outline, plan


@pytest.mark.parametrize(
    ("window", "shape"),
    [
        ("COUNTWINDOW(5)", "CountShape(size=5, every=5)"),
        ("CountWindow(5, 2)", "CountShape(size=5, every=2)"),
        ("SLIDINGWINDOW(mi, 1)", "SlidingShape(size=60000, delay=0)"),
        ("slidingwindow(SS, 5, 7)", "SlidingShape(size=5000, delay=7000)"),
        ("SESSIONWINDOW(hh, 2, 1)", "CappedSessionShape(longest=7200000, timeout=3600000)"),
        ("STATEWINDOW(id > 1)", "StateShape()"),
        ("HOPPINGWINDOW(ms, 10, 5)", "Hop(size=10, slide=5, offset=0)"),
        ("TUMBLINGWINDOW(dd, 1)", "Tumble(size=86400000, offset=0)"),
    ],
)
def test_windows_of_rows_have_their_shape(window: str, shape: str):
    assert outline(plan(f"SELECT * FROM pay GROUP BY {window}")).splitlines()[1].strip().startswith(f"{shape} on ts")


@pytest.mark.parametrize("source", ["SELECT DISTINCT who, ts FROM pay", "SELECT who, ts FROM pay GROUP BY who, ts"])
def test_the_event_time_that_groups_keep_is_that_of_a_window(source: str):
    assert " on ts" in outline(plan(f"SELECT who, COUNT(*) FROM ({source}) GROUP BY who, TUMBLINGWINDOW(ss, 10)"))


@pytest.mark.parametrize(
    ("source", "time"),
    [
        ("pay", "ts"),
        ("(SELECT id, ts FROM pay)", "ts"),
        ("(SELECT id, at FROM pay)", "arrival"),
        ("(SELECT a1 AS id FROM a)", "arrival"),
    ],
)
def test_event_time_is_followed_where_there_is_one(source: str, time: str):
    line = outline(plan(f"SELECT id FROM {source} GROUP BY SLIDINGWINDOW(ss, 1)")).splitlines()[1]
    assert f" on {time} over " in line


def test_filter_acts_below_the_window_and_where_within_it():
    query = "SELECT COUNT(*) FROM pay WHERE id > 1 GROUP BY COUNTWINDOW(3) FILTER (WHERE id > 2)"
    window, _, below, _ = outline(plan(query)).splitlines()[1:]
    assert window.strip() == "CountShape(size=3, every=3) on ts over nothing where (id > 1): by nothing and COUNT(*)"
    assert below.strip() == "filter (id > 2)"


def test_where_acts_before_a_window_of_time_alone():
    lines = outline(plan("SELECT COUNT(*) FROM pay WHERE id > 1 GROUP BY TUMBLINGWINDOW(ss, 10)")).splitlines()
    assert [line.strip() for line in lines[2:]] == [
        "Tumble(size=10000, offset=0) on ts in UTC by nothing: COUNT(*)",
        "project ts",
        "filter (id > 1)",
        "scan pay",
    ]


def test_the_columns_of_a_partition_are_keys():
    query = "SELECT who, COUNT(*) FROM pay GROUP BY COUNTWINDOW(3) OVER (PARTITION BY who)"
    assert columns(plan(query)).startswith("who STRING!, EXPR$1 BIGINT")


def test_bounds_are_milliseconds_and_columns_are_no_time_attributes_any_more():
    query = "SELECT ts, window_start() AS s, window_end() AS e, event_time() AS t FROM pay GROUP BY COUNTWINDOW(3)"
    assert columns(plan(query)) == "ts TIMESTAMP(3), s BIGINT!, e BIGINT!, t BIGINT!"


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            "SELECT * FROM pay GROUP BY COUNTWINDOW(2, 5)",
            "COUNTWINDOW would leave rows out: its second argument is greater than the first\n"
            "  detail: a window has 2 rows, and the next comes 5 rows later\n"
            "  hint:   write COUNTWINDOW(5, 2)",
        ),
        (
            "SELECT * FROM pay GROUP BY COUNTWINDOW(0)",
            "the number of rows of COUNTWINDOW is a whole number from 1 to 2147483647\n  detail: it is 0",
        ),
        (
            "SELECT * FROM pay GROUP BY TUMBLINGWINDOW(sec, 10)",
            "the unit of TUMBLINGWINDOW is one of dd, hh, mi, ss, ms\n"
            "  detail: it is sec\n"
            "  hint:   write TUMBLINGWINDOW(ss, 10), for ten seconds",
        ),
        (
            "SELECT * FROM pay GROUP BY TUMBLINGWINDOW(ss, -1)",
            "the size of TUMBLINGWINDOW is a whole number from 1 to 2147483647\n  detail: it is -1",
        ),
        (
            "SELECT * FROM pay GROUP BY SESSIONWINDOW(ss, 10)",
            "SESSIONWINDOW takes other arguments\n  detail: it is written SESSIONWINDOW(unit, longest, timeout)",
        ),
        (
            "SELECT * FROM pay GROUP BY COUNTWINDOW(5) OVER (WHEN id > 1)",
            "WHEN is not for COUNTWINDOW\n"
            "  detail: OVER (WHEN ...) says which rows fire a sliding window; other windows are not fired by rows\n"
            "  hint:   write FILTER (WHERE ...) to choose the rows that the window is made of",
        ),
        (
            "SELECT * FROM pay GROUP BY COUNTWINDOW(5), TUMBLINGWINDOW(ss, 5)",
            "a query groups by one window at most",
        ),
        (
            "SELECT COUNT(*) FROM pay GROUP BY COUNTWINDOW(5), TUMBLE(ts, INTERVAL '1' HOUR)",
            "a query groups by one window at most",
        ),
        (
            "SELECT * FROM COUNTWINDOW(5)",
            "COUNTWINDOW is not a table function\n  hint:   write GROUP BY COUNTWINDOW(...)",
        ),
        (
            "SELECT id, COUNT(*) FROM pay GROUP BY COUNTWINDOW(5)",
            'column "id" is neither grouped by nor aggregated\n'
            "  detail: the query has one group, of all rows\n"
            "  hint:   add id to GROUP BY, or take MAX(id)",
        ),
        (
            "SELECT * FROM pay GROUP BY COUNTWINDOW(5) HAVING id > 1",
            'column "id" is not aggregated\n'
            "  detail: HAVING is about the whole window\n"
            "  hint:   write WHERE to choose rows of the window, FILTER (WHERE ...) to choose what it is made of",
        ),
        (
            "SELECT * FROM pay WHERE id IN (SELECT a1 FROM a) GROUP BY COUNTWINDOW(5)",
            "a query cannot stand in a condition of such a window, nor in WHERE beside it\n"
            "  hint:   write the condition in a subquery: FROM (SELECT * FROM ... WHERE ...)",
        ),
        (
            "SELECT id FROM (SELECT id FROM pay) GROUP BY SLIDINGWINDOW(ss, 1)",
            'the event time of "pay" does not reach SLIDINGWINDOW\n'
            "  detail: a time attribute is lost in a regular join, a GROUP BY or an expression, or is not selected\n"
            "  hint:   select it as it is, or add PROCTIME() for a window in processing time",
        ),
        (
            "SELECT id FROM (SELECT p.id, p.ts, s.ts AS t FROM pay p, ship s WHERE p.id = s.pay_id AND s.ts BETWEEN"
            " p.ts AND p.ts + INTERVAL '1' HOUR) GROUP BY SLIDINGWINDOW(ss, 1)",
            "SLIDINGWINDOW finds more than one event time\n"
            "  detail: there are ts and t\n"
            "  hint:   read from a subquery that selects one of them",
        ),
        (
            "SELECT id, window_start() FROM pay",
            "WINDOW_START is not allowed here\n  hint:   it needs a window in GROUP BY or an OVER clause",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM pay GROUP BY who) GROUP BY COUNTWINDOW(5)",
            "a count window cannot read an updating input\n"
            "  detail: GROUP BY who updates and deletes rows\n"
            "  hint:   put it before that step, or use GROUP BY without a window",
        ),
        (
            "SELECT COUNT(*) FROM item GROUP BY COUNTWINDOW(5)",
            "a count window cannot read an updating input\n"
            '  detail: table "item" updates and deletes rows\n'
            "  hint:   use GROUP BY without a window",
        ),
        (
            "SELECT COUNT(*) FROM shelf GROUP BY SLIDINGWINDOW(ss, 5)",
            "a sliding window cannot read an updating input\n"
            '  detail: table "shelf" updates and deletes rows\n'
            "  hint:   use GROUP BY without a window, or with TUMBLE, HOP or SESSION",
        ),
        (
            "SELECT who, COUNT(*) FROM pay GROUP BY GROUPING SETS ((who, COUNTWINDOW(5)), (who))",
            "a grouping set lacks the window\n"
            "  detail: each set is answered once, when its window closes\n"
            "  hint:   write the window beside the sets: GROUP BY window_start, window_end, GROUPING SETS ((a), ())",
        ),
        (
            "SELECT * FROM pay GROUP BY STATEWINDOW(id)",
            "a condition must be BOOLEAN, this is BIGINT",
        ),
    ],
)
def test_what_cannot_be_is_a_mistake(query: str, mistake: str):
    assert mistakes(query) == [mistake]


def test_a_window_may_stand_in_each_grouping_set_and_be_parted_twice_by_one_column():
    beside = "GROUPING SETS ((who), ()), COUNTWINDOW(5) OVER (PARTITION BY id)"
    inside = beside.replace("(who), ()", "(who, {0}), ({0})").replace(", COUNTWINDOW(5) OVER (PARTITION BY id)", "")
    twice = inside.format("COUNTWINDOW(5) OVER (PARTITION BY id, id)")
    found = [outline(plan(f"SELECT who, COUNT(*) FROM pay GROUP BY {each}")) for each in (beside, twice)]
    assert found[0] == found[1]
