"""Temporal joins: what they read, what they show, what is wrong with them."""

from __future__ import annotations

import pytest

from service.plan.explain import as_text, explain
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Scan, TemporalJoin, TopN
from service.plan.table import TimeKind
from service.plan.walk import in_order
from service.sql.pipeline import PipelineErrors, read

WITH = "WITH ('connector' = 'kafka', 'topic' = 't', 'scan.startup.mode' = 'earliest-offset', 'format' = '{}')"
JSON = WITH.format("json")
TABLES = f"""
CREATE TABLE orders (
  id INT, currency STRING, region STRING, ts TIMESTAMP(3), at AS PROCTIME(), WATERMARK FOR ts AS ts
) {JSON};
CREATE TABLE rates (
  currency STRING, rate INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (currency) NOT ENFORCED
)
{WITH.format("debezium-json")};
CREATE TABLE regional (
  currency STRING, region STRING, rate INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts,
  PRIMARY KEY (currency, region) NOT ENFORCED
) {WITH.format("changelog-json")};
CREATE TABLE by_number (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (n) NOT ENFORCED) {JSON};
CREATE TABLE history (currency STRING, rate INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) {JSON};
CREATE TABLE timeless (currency STRING, rate INT, PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW high AS SELECT currency, rate * 2 AS twice, ts FROM rates WHERE rate > 100;
CREATE VIEW keyless AS SELECT rate, ts FROM rates;
CREATE VIEW highest AS SELECT currency, MAX(rate) AS rate FROM rates GROUP BY currency;
CREATE VIEW latest AS SELECT currency, rate, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS n FROM history) WHERE n = 1;
CREATE VIEW highest_rates AS SELECT currency, rate, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY rate DESC) AS n FROM history) WHERE n = 1;
CREATE TABLE changing (currency STRING, at AS PROCTIME()) {WITH.format("debezium-json")};
CREATE TEMPORARY TABLE FUNCTION Rates AS history PRIMARY KEY (currency) TIME ATTRIBUTE (ts);
"""
AS_OF = "FOR SYSTEM_TIME AS OF o.ts AS r"


def join_of(query: str) -> TemporalJoin:
    (job,) = read(f"{TABLES} EXPLAIN {query}").explains
    (found,) = [node for node in in_order(job.sinks) if isinstance(node, TemporalJoin)]
    return found


def mistakes(query: str) -> list[str]:
    with pytest.raises(PipelineErrors) as error:
        read(f"{TABLES} EXPLAIN {query}")
    return [str(m).partition(": ")[2] for m in error.value.mistakes]


def test_a_table_of_changes_is_read_as_upserts_and_only_there():
    (job,) = read(
        f"{TABLES} EXPLAIN SELECT o.id, r.rate FROM orders AS o JOIN rates {AS_OF} ON o.currency = r.currency"
        " UNION ALL SELECT 1, rate FROM rates"
    ).explains
    assert sorted(n.table.upserts for n in in_order(job.sinks) if isinstance(n, Scan) and n.table.name == "rates") == [
        False,
        True,
    ]


def test_the_key_is_the_primary_key_and_what_else_is_compared_a_condition():
    join = join_of(
        f"SELECT * FROM orders AS o JOIN regional {AS_OF}"
        " ON r.region = o.region AND o.currency = r.currency AND o.id = r.rate AND r.ts < o.ts"
    )
    assert (join.left_keys, join.right_keys) == ((1, 2), (0, 1))
    assert join.residual is not None


def test_a_key_of_another_type_is_compared_in_the_common_type():
    join = join_of(f"SELECT * FROM orders AS o JOIN by_number {AS_OF} ON o.id = r.n")
    assert join.residual is None


def test_only_the_left_time_attribute_is_left():
    join = join_of(f"SELECT * FROM orders AS o LEFT JOIN rates {AS_OF} ON o.currency = r.currency")
    assert [f.name for f in join.fields if f.time is TimeKind.EVENT] == ["ts"]
    assert all(f.nullable for f in join.fields[5:])


def test_a_view_that_filters_withholds_the_version_and_not_the_one_before_it():
    join = join_of(f"SELECT r.twice FROM orders AS o JOIN high {AS_OF} ON o.currency = r.currency")
    assert join.residual is not None


def test_of_a_view_of_last_rows_every_row_is_a_version():
    join = join_of(f"SELECT r.rate FROM orders AS o JOIN latest {AS_OF} ON o.currency = r.currency")
    assert not any(isinstance(node, TopN) for node in in_order([join]))
    assert join.residual is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT r.rate FROM orders o, LATERAL TABLE(Rates(o.ts)) r WHERE o.currency = r.currency",
        "SELECT r.rate FROM orders o JOIN LATERAL TABLE(Rates(o.ts)) AS r ON o.currency = r.currency",
        "SELECT n FROM orders o LEFT JOIN LATERAL TABLE(Rates(o.ts)) AS r (k, n, t) ON o.currency = k",
        "SELECT Rates.rate FROM orders o, LATERAL TABLE(Rates(o.at)) WHERE o.currency = Rates.currency",
        "SELECT r.rate FROM orders o JOIN timeless FOR SYSTEM_TIME AS OF o.at AS r ON o.currency = r.currency",
    ],
)
def test_all_forms_are_temporal_joins(query: str):
    assert join_of(query).left_keys == (1,)


def test_a_silent_table_is_warned_of_unless_it_has_an_idle_timeout():
    insert = f"SELECT r.rate FROM orders AS o JOIN rates {AS_OF} ON o.currency = r.currency"
    (job,) = read(f"{TABLES} EXPLAIN {insert}").explains
    assert [w.primary for w in explain(job).warnings] == [
        f'while the table "{name}" is silent, no row of this temporal join is answered' for name in ("orders", "rates")
    ]
    (job,) = read(f"SET 'table.exec.source.idle-timeout' = '1 min'; {TABLES} EXPLAIN {insert}").explains
    assert explain(job).warnings == []


def test_explain_says_until_when_each_state_is_kept():
    (job,) = read(
        f"{TABLES} EXPLAIN SELECT rate FROM orders o, LATERAL TABLE(Rates(o.ts)) r WHERE o.currency = r.currency"
    ).explains
    kept = [
        line.partition("keeps ")[2] for line in as_text(explain(job), "pipeline.sql").splitlines() if "keeps" in line
    ]
    assert kept == [
        "left rows, until the watermark reaches their time",
        "newer versions, until the watermark reaches their time",
        "the last version of each (currency), until it is deleted, or a newer one is in force",
    ]


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            f"SELECT * FROM orders AS o JOIN history {AS_OF} ON o.currency = r.currency",
            """"r" has no versions
  detail: table "history" has no PRIMARY KEY
  hint:   declare PRIMARY KEY (<columns>) NOT ENFORCED with the table""",
        ),
        (
            f"SELECT * FROM orders AS o JOIN timeless {AS_OF} ON o.currency = r.currency",
            """"r" has no versions by time
  detail: it has no event-time attribute
  hint:   declare WATERMARK FOR <column> AS <column> with the table""",
        ),
        (
            f"SELECT * FROM orders AS o JOIN regional {AS_OF} ON o.currency = r.currency",
            """this join does not compare the whole primary key of "r"
  detail: there is no equality with region
  hint:   add r.region = <column>""",
        ),
        (
            f"SELECT * FROM orders AS o JOIN rates {AS_OF} ON o.currency > r.currency",
            """this join does not compare the whole primary key of "r"
  detail: there is no equality with currency
  hint:   add r.currency = <column>""",
        ),
        (
            f"SELECT * FROM orders AS o RIGHT JOIN rates {AS_OF} ON o.currency = r.currency",
            """a temporal join cannot be RIGHT
  detail: rows of the left input meet versions of the right one, which are no rows of their own
  hint:   write JOIN or LEFT JOIN""",
        ),
        (
            f"SELECT * FROM orders AS o JOIN keyless {AS_OF} ON o.id = r.rate",
            """"r" has no versions
  detail: it does not show currency, of the primary key
  hint:   select all columns of the primary key""",
        ),
        (
            f"SELECT * FROM orders AS o JOIN highest {AS_OF} ON o.currency = r.currency",
            """"r" has no versions
  detail: it is neither a table with a PRIMARY KEY, nor a view that keeps the last row of each key
  hint:   keep the last row of each key:""",
        ),
        (
            f"SELECT * FROM orders AS o JOIN highest_rates {AS_OF} ON o.currency = r.currency",
            """"r" has no versions
  detail: it ranks rows, and does not keep the last row of each key""",
        ),
        (
            "SELECT * FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.id AS r ON o.currency = r.currency",
            """FOR SYSTEM_TIME AS OF needs a time attribute, and "id" is none""",
        ),
        (
            "SELECT * FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.currency = r.currency",
            """FOR SYSTEM_TIME AS OF needs a time attribute, not an expression
  hint:   name a column that is declared AS PROCTIME()""",
        ),
        (
            "SELECT * FROM rates FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00'",
            """FOR SYSTEM_TIME AS OF belongs to the right side of a join
  hint:   write FROM <left> JOIN <table> FOR SYSTEM_TIME AS OF <left>.<time> ON ...""",
        ),
        (
            "SELECT * FROM orders o, LATERAL TABLE(Rate(o.ts)) r WHERE o.currency = r.currency",
            """the temporal table function "Rate" does not exist
  detail: declared above: Rates
  hint:   did you mean "Rates"?""",
        ),
        (
            "SELECT * FROM Rates",
            """"Rates" is a function of time, no table
  hint:   write JOIN LATERAL TABLE(Rates(<left>.<time>)) AS ... ON ...""",
        ),
        (
            "SELECT * FROM orders o, LATERAL TABLE(Rates(o.ts, 1)) r WHERE o.currency = r.currency",
            "Rates takes one argument, a time attribute of the left input",
        ),
        (
            "SELECT o.at FROM changing AS o JOIN timeless FOR SYSTEM_TIME AS OF o.at AS r ON o.currency = r.currency",
            '"at", which is PROCTIME(), would have another value when its row is retracted',
        ),
    ],
)
def test_what_cannot_be_joined_is_refused_with_the_reason(query: str, mistake: str):
    assert any(found.startswith(mistake) for found in mistakes(query))


@pytest.mark.parametrize(
    ("statement", "mistake"),
    [
        ("AS nowhere PRIMARY KEY (currency) TIME ATTRIBUTE (ts)", 'table "nowhere" does not exist'),
        ("AS history PRIMARY KEY (currenzy) TIME ATTRIBUTE (ts)", 'column "currenzy" does not exist'),
        (
            "AS history PRIMARY KEY (currency) TIME ATTRIBUTE (rate)",
            'a temporal table function needs a time attribute, and "rate" is none',
        ),
        (
            "AS regional PRIMARY KEY (currency) TIME ATTRIBUTE (ts)",
            "a table whose rows change has versions by its own primary key alone",
        ),
        ("AS history TIME ATTRIBUTE (ts)", '"TIME" is not expected here'),
    ],
)
def test_a_function_that_cannot_be_declared_is_refused(statement: str, mistake: str):
    with pytest.raises(PipelineErrors) as error:
        read(f"{TABLES} CREATE TEMPORARY TABLE FUNCTION f {statement};")
    (found,) = error.value.mistakes
    assert str(found).partition(": ")[2].startswith(mistake)


AT = "FOR SYSTEM_TIME AS OF o.at"


def order_of_reading(statements: str) -> dict[str, list[str]]:
    """The tables that are read after others, and these."""
    (job,) = read(f"{TABLES} {statements}").explains
    program = compile_job(job)
    names = {source.id: source.table.name for source in program.sources}
    return {names[s.id]: [names[each] for each in s.after] for s in program.sources if s.after}


@pytest.mark.parametrize(
    ("statements", "after"),
    [
        (f"EXPLAIN SELECT o.id FROM orders AS o JOIN timeless {AT} AS t ON o.currency = t.currency", ["timeless"]),
        (
            "EXPLAIN SELECT o.id FROM orders AS o"
            f" LEFT JOIN timeless {AT} AS t ON o.currency = t.currency JOIN rates {AT} AS r ON o.currency = r.currency",
            ["timeless", "rates"],
        ),
        (f"EXPLAIN SELECT o.id FROM orders AS o JOIN latest {AT} AS t ON o.currency = t.currency", ["history"]),
        (f"EXPLAIN SELECT o.id FROM orders AS o JOIN rates {AS_OF} ON o.currency = r.currency", None),
        (
            "SET 'tailrace.temporal.wait-for-table' = 'false';"
            f"EXPLAIN SELECT o.id FROM orders AS o JOIN timeless {AT} AS t ON o.currency = t.currency",
            None,
        ),
    ],
    ids=["a table", "two tables", "a view", "in event time", "switched off"],
)
def test_in_processing_time_the_left_table_is_read_after_the_table_of_versions(statements: str, after: list[str]):
    found = order_of_reading(statements)
    assert {name: sorted(tables) for name, tables in found.items()} == ({"orders": sorted(after)} if after else {})


def test_a_table_does_not_wait_for_itself():
    mine = "(SELECT currency, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS n"
    assert not order_of_reading(
        f"CREATE VIEW mine AS SELECT * FROM {mine} FROM orders) WHERE n = 1);"
        f"EXPLAIN SELECT o.id FROM orders AS o JOIN mine {AT} AS t ON o.currency = t.currency"
    )


def test_tables_that_would_wait_for_each_other_are_refused():
    with pytest.raises(PipelineErrors) as error:
        read(f"""{TABLES}
        CREATE TABLE ships (n BIGINT, at AS PROCTIME(), PRIMARY KEY (n) NOT ENFORCED) {JSON};
        CREATE TABLE ports (n BIGINT, at AS PROCTIME(), PRIMARY KEY (n) NOT ENFORCED) {JSON};
        CREATE TABLE a (n BIGINT) WITH ('connector' = 'print');
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO a SELECT o.n FROM ships AS o JOIN ports {AT} AS t ON o.n = t.n;
          INSERT INTO a SELECT o.n FROM ports AS o JOIN ships {AT} AS t ON o.n = t.n;
        END;""")
    assert "ports and ships would wait for each other, and none of them be read" in str(error.value)
    assert "'tailrace.temporal.wait-for-table' to 'false'" in str(error.value)
