"""How a file is cut into statements, and what becomes of those that cannot be read."""

from __future__ import annotations

import pytest

from service.sql.errors import Mistakes
from service.sql.parse.source import read_source
from service.sql.parse.statement_grammar import read_statements
from service.sql.parse.statements import CreateTable, CreateView, Explain, Insert, Reset, SetOption, StatementSet


def statements(text: str) -> list[object]:
    mistakes = Mistakes(read_source("p.sql", text, {}))
    found = read_statements(mistakes)
    assert not mistakes, mistakes.all()
    return list(found)


def mistakes_in(text: str) -> list[str]:
    mistakes = Mistakes(read_source("p.sql", text, {}))
    read_statements(mistakes)
    return [str(m) for m in mistakes.all()]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SET 'a' = 'b'", SetOption),
        ("SET pipeline.name = foo-bar", SetOption),
        ("RESET 'a'", Reset),
        ("RESET", Reset),
        ("CREATE TABLE t (a INT)", CreateTable),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT) COMMENT 'x' WITH ()", CreateTable),
        ("CREATE VIEW v AS SELECT 1", CreateView),
        ("create temporary view v (a, b) as with x as (select 1, 2) select * from x", CreateView),
        ("INSERT INTO t SELECT 1", Insert),
        ("INSERT INTO t (a, b) (SELECT 1, 2)", Insert),
        ("INSERT INTO default_catalog.default_database.t VALUES (1), (2)", Insert),
        ("EXECUTE INSERT INTO t SELECT 1", Insert),
        ("INSERT INTO t /*+ OPTIONS('a' = 'b') */ SELECT 1", Insert),
        ("EXPLAIN SELECT 1", Explain),
        ("EXPLAIN PLAN FOR INSERT INTO t SELECT 1", Explain),
        ("EXPLAIN ESTIMATED_COST, CHANGELOG_MODE INSERT INTO t SELECT 1", Explain),
        ("EXPLAIN STATEMENT SET BEGIN INSERT INTO t SELECT 1; END", Explain),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; INSERT INTO u SELECT 2; END", StatementSet),
        ("BEGIN STATEMENT SET; INSERT INTO t SELECT 1; INSERT INTO u SELECT 2; END;", StatementSet),
    ],
)
def test_a_statement_is_read(text: str, kind: type):
    assert [type(s) for s in statements(text)] == [kind]


def test_semicolons_in_texts_and_comments_end_nothing():
    text = "SET 'a' = 'b;c'; -- x; y\n/* ; */ SET 'd' = 'e'"
    assert [(s.option.key, s.option.value) for s in statements(text) if isinstance(s, SetOption)] == [
        ("a", "b;c"),
        ("d", "e"),
    ]


def test_names_of_the_default_catalog_are_local_names():
    (insert,) = statements("INSERT INTO default_catalog.default_database.t SELECT 1")
    assert isinstance(insert, Insert)
    assert insert.table.text == "t"


def test_hints_of_an_insert_are_options():
    (insert,) = statements("INSERT INTO t /*+ OPTIONS('sink.partitioner' = 'fixed') */ SELECT 1")
    assert isinstance(insert, Insert)
    assert [(o.key, o.value) for o in insert.options] == [("sink.partitioner", "fixed")]


def test_every_statement_that_cannot_be_read_is_a_mistake_of_its_own():
    found = mistakes_in("CREAT TABLE t (a INT);\nSELECT 1;\nINSERT INTO t SELECT a FROM;\nSET 'a' 'b';\nALTER TABLE t")
    assert [m.splitlines()[0] for m in found] == [
        'p.sql:1:1: a statement cannot start with "CREAT"',
        "p.sql:2:1: a query by itself has no sink",
        "p.sql:3:27: the end of the statement is not expected here",
        'p.sql:4:9: "b" is not expected here',
        'p.sql:5:1: a statement cannot start with "ALTER"',
    ]


def test_a_statement_that_is_not_known_is_told_what_there_is():
    assert mistakes_in("ALTER TABLE t") == [
        'p.sql:1:1: a statement cannot start with "ALTER"\n'
        "  detail: a pipeline holds CREATE TABLE, CREATE VIEW, INSERT INTO, EXECUTE STATEMENT SET, SET, RESET, EXPLAIN,"
        " DROP, USE and SHOW"
    ]


@pytest.mark.parametrize(("statement", "why"), [("ADD JAR '/x.jar'", "jars"), ("LOAD MODULE core", "modules")])
def test_a_statement_about_a_session_says_why_there_is_none(statement: str, why: str):
    (mistake,) = mistakes_in(statement)
    assert why in mistake.splitlines()[1]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("SET 'a' = 'b\n", "p.sql:1:11: a quotation or a comment does not end"),
        ("SET 'a' = 'b'; /* x", "p.sql:1:16: a quotation or a comment does not end"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (a)", "p.sql:1:24: PARTITIONED BY has no meaning for a topic"),
        ("CREATE TABLE t (a)", 'p.sql:1:18: ")" is not expected here'),
        ("CREATE FUNCTION f AS 'x'", "p.sql:1:1: CREATE FUNCTION is not supported"),
        ("ADD JAR '/x.jar'", "p.sql:1:1: ADD JAR is not supported"),
        ("REMOVE JAR '/x.jar'", "p.sql:1:1: REMOVE JAR is not supported"),
        ("LOAD MODULE hive WITH ('hive-version' = '3.1.3')", "p.sql:1:1: LOAD MODULE is not supported"),
        ("UNLOAD MODULE core", "p.sql:1:1: UNLOAD MODULE is not supported"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1;", "p.sql:1:1: the statement set has no END"),
        (
            "EXECUTE STATEMENT SET BEGIN SET 'a' = 'b'; END",
            "p.sql:1:29: a statement set holds INSERT statements only",
        ),
        ("INSERT OVERWRITE t SELECT 1", 'p.sql:1:8: "OVERWRITE" is not expected here'),
        ("INSERT INTO t SELECT a b c FROM x", 'p.sql:1:26: "c" is not expected here'),
        ("INSERT INTO t SELECT x::INT FROM y", 'p.sql:1:23: ":" is not expected here'),
    ],
)
def test_a_mistake_stands_where_reading_stopped(text: str, mistake: str):
    assert [m.splitlines()[0] for m in mistakes_in(text)] == [mistake]
