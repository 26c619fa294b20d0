"""INSERT INTO: which columns are written, what is cast on the way, what does not fit."""

from __future__ import annotations

import duckdb
import pytest

from service.plan.expressions import render
from service.plan.nodes import Filter, Project, Sink
from service.plan.walk import in_order
from service.sql.pipeline import PipelineErrors, read
from tests.sql.outline import TABLES, columns, outline

KAFKA = "'connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'b', 'format' = 'json'"


def sink(insert: str, declared: str = "n BIGINT, t STRING", options: str = KAFKA, before: str = "") -> Sink:
    pipeline = read(f"{before}{TABLES}CREATE TABLE out ({declared}) WITH ({options}); INSERT INTO out {insert}")
    return pipeline.jobs[0].sinks[0]


def mistakes(insert: str, declared: str = "n BIGINT, t STRING", options: str = KAFKA) -> list[str]:
    with pytest.raises(PipelineErrors) as raised:
        sink(insert, declared, options)
    return [str(m).split(": ", 1)[1] for m in raised.value.mistakes]


def test_a_query_with_the_columns_of_the_table_is_written_as_it_is():
    found = sink("SELECT id, who FROM pay")
    assert outline(found.input) == "project id, who\n  scan pay"
    assert found.columns == (0, 1)


def test_values_are_cast_where_that_loses_nothing():
    found = sink("SELECT a1, b3 FROM a JOIN b ON a1 = b1")
    assert outline(found.input).splitlines()[0] == "project CAST(a1 AS BIGINT), b3"
    assert columns(found.input) == "n BIGINT, t STRING"


def test_columns_left_out_are_null():
    found = sink("(t) SELECT who FROM pay")
    assert isinstance(found.input, Project)
    assert outline(found.input).splitlines()[0] == "project NULL, who"


def test_named_columns_are_filled_in_any_order():
    assert outline(sink("(t, n) SELECT who, id FROM pay").input).splitlines()[0] == "project id, who"


def test_metadata_is_written_unless_virtual_and_computed_columns_are_not():
    found = sink(
        "SELECT id, ts FROM pay",
        "n BIGINT, twice AS n * 2, at TIMESTAMP(3) METADATA FROM 'timestamp', o BIGINT METADATA FROM 'offset' VIRTUAL",
    )
    assert found.columns == (0, 2)


def test_a_column_that_must_not_be_null_is_checked_where_it_may_be():
    found = sink("SELECT id, who FROM pay", "n BIGINT NOT NULL, t STRING NOT NULL")
    assert outline(found.input) == "filter NOT NULL(id)\n  project id, who\n    scan pay"
    dropped = sink(
        "SELECT id, who FROM pay",
        "n BIGINT NOT NULL, t STRING NOT NULL",
        before="SET 'table.exec.sink.not-null-enforcer' = 'DROP';",
    )
    assert "filter (id IS NOT NULL)" in outline(dropped.input)


def test_the_check_shows_the_rows_that_fail():
    found = sink("SELECT id, who FROM pay", "n BIGINT NOT NULL, t STRING")
    (check,) = [node.condition for node in in_order([found]) if isinstance(node, Filter)]
    rows = "FROM (VALUES (7), (NULL)) AS v (c0)"
    fails = f"TRY(struct_pack(a := {render(check)})) IS NULL"
    assert duckdb.execute(f"SELECT {fails} {rows}").fetchall() == [(False,), (True,)]
    with pytest.raises(duckdb.ConversionException, match='column "n" is NOT NULL, but has no value'):
        duckdb.execute(f"{rows} WHERE {render(check)}").fetchall()


def test_text_is_cut_and_padded_where_that_is_asked_for():
    before = "SET 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD';"
    as_it_is = sink("SELECT id, who FROM pay", "n BIGINT, t CHAR(3)")
    assert outline(as_it_is.input).splitlines()[0] == "project id, CAST(who AS CHAR(3))"
    assert isinstance(as_it_is.input, Project)
    trimmed = sink("SELECT id, who FROM pay", "n BIGINT, t CHAR(3)", before=before)
    assert isinstance(trimmed.input, Project)
    texts = [render(node.expressions[1], lambda _: "c") for node in (as_it_is.input, trimmed.input)]
    values = [duckdb.execute(f"SELECT {text} FROM (VALUES ('a'), ('abcd')) AS v (c)").fetchall() for text in texts]
    assert values == [[("a",), ("abcd",)], [("a  ",), ("abc",)]]


def test_an_options_hint_holds_for_one_insert():
    found = sink("/*+ OPTIONS('topic' = 'other') */ SELECT id, who FROM pay")
    assert found.table.connector.topics == ("other",)


@pytest.mark.parametrize(
    ("insert", "declared", "mistake"),
    [
        (
            "SELECT id FROM pay",
            "n BIGINT, t STRING",
            'the query gives 1 columns, and "out" takes 2\n  detail: the query: id BIGINT; '
            "the table: n BIGINT, t STRING",
        ),
        (
            "SELECT id, id FROM pay",
            "n BIGINT, t STRING",
            'column "id" does not fit into "t" of table "out"\n  detail: it is BIGINT, and t takes STRING\n'
            "  hint:   write CAST(id AS STRING)",
        ),
        (
            "(n, x) SELECT id, who FROM pay",
            "n BIGINT, t STRING",
            'column "x" does not exist in table "out"\n  detail: out has the columns n, t',
        ),
        ("(n, n) SELECT id, id FROM pay", "n BIGINT, t STRING", 'column "n" is filled twice'),
        (
            "(n) SELECT id FROM pay",
            "n BIGINT, t STRING NOT NULL",
            'column "t" is NOT NULL and is left out\n  hint:   add t to the list',
        ),
        (
            "(n, c) SELECT id, id FROM pay",
            "n BIGINT, c AS n + 1",
            'column "c" cannot be written\n  detail: it is computed',
        ),
        (
            "SELECT id, id FROM pay",
            "n BIGINT, o BIGINT METADATA FROM 'offset'",
            "column \"o\" cannot be written\n  detail: the metadata 'offset' of a record can only be read\n"
            "  hint:   declare o ... METADATA FROM 'offset' VIRTUAL",
        ),
    ],
)
def test_what_does_not_fit_is_refused(insert: str, declared: str, mistake: str):
    found = mistakes(insert, declared)
    assert found[0] == mistake


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT 1, id + 1 FROM pay", "CAST(id + 1 AS STRING)"),
        ("SELECT 1, id + 1 AS w FROM pay", "CAST(id + 1 AS STRING)"),
        ("SELECT 1, pay.`id` AS w FROM pay", "CAST(pay.`id` AS STRING)"),
        ("SELECT 1, COUNT(*) FROM pay", "CAST(COUNT(*) AS STRING)"),
        ("SELECT 1, CASE WHEN id > 1 THEN 1 END FROM pay", "CAST(CASE WHEN id > 1 THEN 1 END AS STRING)"),
        ("VALUES (1, 2)", "CAST(2 AS STRING)"),
        ("VALUES (1, 2), (3, 4)", "CAST(... AS STRING)"),
        ("SELECT 1, EXTRACT(YEAR FROM ts) FROM pay", "CAST(... AS STRING)"),
        (f"SELECT 1, id{' + id' * 9} FROM pay", "CAST(... AS STRING)"),
        ("SELECT * FROM (SELECT 1 AS n, id FROM pay)", "CAST(id AS STRING)"),
        ("SELECT * FROM (SELECT 1 AS n, id + 1 FROM pay)", "CAST(... AS STRING)"),
        ("SELECT 1, id FROM pay UNION ALL SELECT 1, id FROM pay", "CAST(... AS STRING)"),
    ],
)
def test_the_hint_casts_what_is_written(query: str, hint: str):
    assert mistakes(query, "n BIGINT, t STRING")[0].splitlines()[-1] == f"  hint:   write {hint}"


def test_no_cast_is_advised_where_there_is_none():
    (time,) = mistakes("SELECT ts FROM pay", "n BIGINT")
    assert time.splitlines()[-1] == "  hint:   use UNIX_TIMESTAMP(CAST(time AS STRING)) for seconds"
    (array,) = mistakes("SELECT ARRAY[id] FROM pay", "n BIGINT")
    assert "hint" not in array


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ("'connector' = 'datagen'", "table \"out\" cannot be written to\n  detail: 'datagen' is a source"),
        (KAFKA.replace("'out'", "'x;y'"), 'table "out" cannot be written to\n  detail: a sink has one topic'),
    ],
)
def test_a_table_that_is_only_read_is_refused(options: str, mistake: str):
    assert mistakes("SELECT id, who FROM pay", options=options) == [mistake]


def test_a_sink_cannot_be_read():
    with pytest.raises(PipelineErrors, match="'print' is a sink"):
        read(f"{TABLES}CREATE TABLE out (n INT) WITH ('connector' = 'print'); EXPLAIN SELECT * FROM out")


def test_a_format_that_knows_no_updates_is_refused_for_them():
    found = mistakes("SELECT COUNT(*), who FROM pay GROUP BY who")
    assert len(found) == 1
    assert "json" in found[0]
