"""Window joins: which joins they are, what they show and how long they keep rows."""

from __future__ import annotations

import pytest

from service.plan.explain import explain
from service.plan.nodes import Join, Node, WindowJoin
from service.plan.table import TimeKind
from service.plan.walk import in_order
from service.sql.pipeline import read

TABLES = """
CREATE TABLE l (k STRING, v INT, ts TIMESTAMP(3), at AS PROCTIME(), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'l', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE VIEW a AS SELECT * FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND));
CREATE VIEW b AS SELECT * FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE v > 1;
CREATE VIEW c AS SELECT k, COUNT(*) AS n, window_start AS s, window_end AS e
FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
CREATE VIEW p AS SELECT * FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(at), INTERVAL '10' SECOND));
CREATE VIEW g AS SELECT * FROM TABLE(CUMULATE(TABLE l, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND));
CREATE VIEW s AS SELECT k, COUNT(*) AS n, window_start AS since, window_end AS until
FROM TABLE(SESSION(TABLE l PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end;
CREATE TABLE u (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'u', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE VIEW d AS SELECT * FROM TABLE(TUMBLE(TABLE u, DESCRIPTOR(ts), INTERVAL '10' SECOND));
CREATE VIEW n AS SELECT k, COUNT(*) AS n, window_start, window_end FROM d GROUP BY k, window_start, window_end;
CREATE VIEW plain AS SELECT k, CAST(window_start AS STRING) AS window_start, window_end FROM a;
"""
BOTH = "a.window_start = b.window_start AND a.window_end = b.window_end"


def joins_of(query: str) -> list[Node]:
    (job,) = read(f"{TABLES} EXPLAIN {query}").explains
    return [node for node in in_order(job.sinks) if isinstance(node, Join | WindowJoin)]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.k FROM a JOIN b ON {BOTH}",
        f"SELECT a.k FROM a FULL JOIN b ON a.k = b.k AND {BOTH} AND a.v < b.v",
        f"SELECT a.k FROM a, b WHERE {BOTH} AND a.k = b.k",
        "SELECT a.k FROM a LEFT JOIN c ON a.window_end = c.e AND c.s = a.window_start",
        "SELECT k FROM c WHERE (k, s, e) IN (SELECT k, window_start, window_end FROM b)",
        f"SELECT k FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE {BOTH} AND a.k = b.k)",
        "SELECT x.k FROM g AS x JOIN g AS y ON x.window_start = y.window_start AND x.window_end = y.window_end",
        "SELECT x.k FROM s AS x JOIN s AS y ON x.k = y.k AND x.since = y.since AND x.until = y.until",
        "SELECT x.k FROM p AS x JOIN p AS y ON x.window_start = y.window_start AND x.window_end = y.window_end",
    ],
)
def test_a_join_on_the_start_and_the_end_of_windows_is_a_window_join(query: str):
    assert [type(node) for node in joins_of(query)] == [WindowJoin]


def test_its_result_carries_the_windows_into_the_next_join():
    query = f"SELECT a.k FROM a JOIN b ON {BOTH} JOIN c ON a.window_start = c.s AND a.window_end = c.e"
    assert [type(node) for node in joins_of(query)] == [WindowJoin, WindowJoin]


def test_the_time_of_a_side_that_may_be_padded_is_none():
    (join,) = joins_of(f"SELECT * FROM a LEFT JOIN b ON {BOTH}")
    assert isinstance(join, WindowJoin)
    assert [i for i, f in enumerate(join.fields) if f.time is TimeKind.EVENT] == [join.left_time]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k FROM a JOIN p ON a.window_start = p.window_start AND a.window_end = p.window_end",
        "SELECT a.k FROM a JOIN plain ON CAST(a.window_start AS STRING) = plain.window_start",
        "SELECT a.k FROM a JOIN b ON a.k = b.k",
    ],
)
def test_other_joins_are_regular_joins(query: str):
    assert [type(node) for node in joins_of(query)] == [Join]


def test_a_join_on_one_end_alone_is_warned_of():
    query = "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.window_end = b.window_end"
    (job,) = read(f"{TABLES} EXPLAIN {query}").explains
    warnings = [w.primary for w in explain(job).warnings]
    half = "this join of windows is a regular join: it compares only the start or only the end of the windows"
    assert half in warnings


UPDATING = "a.k = d.k AND a.window_start = d.window_start AND a.window_end = d.window_end"


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (f"SELECT a.k FROM a JOIN d ON {UPDATING}", 'table "u"'),
        (f"SELECT d.k FROM d LEFT JOIN a ON {UPDATING}", 'table "u"'),
        (f"SELECT k FROM a WHERE NOT EXISTS (SELECT * FROM d WHERE {UPDATING})", 'table "u"'),
        (
            "SELECT a.k FROM a JOIN (SELECT * FROM b QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) < 3) AS d"
            f" ON {UPDATING}",
            "the Top-N",
        ),
    ],
)
def test_windows_of_updating_rows_are_joined_without_an_end_and_the_warning_says_why(query: str, what: str):
    (job,) = read(f"{TABLES} EXPLAIN {query}").explains
    found = [w for w in explain(job).warnings if "join" in w.primary]
    assert [type(node) for node in joins_of(query)] == [Join]
    why = f"it is no window join, which answers once, when the window closes: {what} updates and deletes rows"
    assert found
    assert {(w.primary.startswith("the state of this"), w.detail) for w in found} == {(True, why)}


def test_windows_of_updating_rows_are_joined_with_an_end_once_they_are_aggregated():
    query = "SELECT a.k FROM a JOIN n ON a.k = n.k AND a.window_start = n.window_start AND a.window_end = n.window_end"
    assert [type(node) for node in joins_of(query)] == [WindowJoin]


def test_a_regular_join_has_no_reason_to_say():
    (job,) = read(f"{TABLES} EXPLAIN SELECT a.k FROM a JOIN u ON a.k = u.k").explains
    assert {w.detail for w in explain(job).warnings} == {""}


def test_no_state_of_a_window_join_is_without_a_bound():
    (job,) = read(f"{TABLES} EXPLAIN SELECT a.k FROM a JOIN b ON {BOTH}").explains
    assert explain(job).warnings == []
