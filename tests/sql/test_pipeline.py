"""From a file to its jobs: statement sets, views, EXPLAIN, names."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.plan.nodes import Scan
from service.plan.walk import in_order
from service.sql.pipeline import PipelineErrors, load, read
from tests.sql.outline import TABLES, outline

OUT = "CREATE TABLE {} (n INT) WITH ('connector' = 'print');"
SINKS = TABLES + OUT.format("one") + OUT.format("two")


def test_inserts_outside_a_set_are_jobs_of_their_own():
    jobs = read(SINKS + "INSERT INTO one SELECT a1 FROM a; INSERT INTO two SELECT a2 FROM a;").jobs
    assert [(j.name, len(j.sinks)) for j in jobs] == [("one", 1), ("two", 1)]


def test_a_statement_set_is_one_job():
    text = "EXECUTE STATEMENT SET BEGIN INSERT INTO one SELECT a1 FROM a; INSERT INTO two SELECT a2 FROM a; END;"
    (job,) = read(SINKS + text).jobs
    assert (job.name, [s.table.name for s in job.sinks]) == ("one_two", ["one", "two"])


def test_two_jobs_have_two_names():
    jobs = read(SINKS + "INSERT INTO one SELECT a1 FROM a; INSERT INTO one SELECT a2 FROM a;").jobs
    assert [j.name for j in jobs] == ["one", "one_2"]


def test_explain_runs_nothing():
    pipeline = read(SINKS + "EXPLAIN INSERT INTO one SELECT a1 FROM a; EXPLAIN SELECT a2 FROM a;")
    assert pipeline.jobs == ()
    assert [j.sinks[0].table.name for j in pipeline.explains] == ["one", "query"]


def test_a_view_is_its_query_under_its_names():
    view = "CREATE VIEW v (x, y) AS SELECT a1, a2 FROM a WHERE a3 > 0;"
    found = read(SINKS + view + "EXPLAIN SELECT y FROM v AS w WHERE w.x = 1").explains[0].sinks[0].input
    assert outline(found) == (
        "project y\n  filter (w.x = 1)\n    project a1, a2\n      project a1, a2\n        filter (a3 > 0)\n"
        "          scan a"
    )


def test_a_view_sees_no_names_of_the_query_around_it():
    text = "CREATE VIEW v AS SELECT a1 FROM a; EXPLAIN WITH a AS (SELECT b1 AS a1 FROM b) SELECT * FROM v"
    (scan,) = [n for n in in_order(read(SINKS + text).explains[0].sinks) if isinstance(n, Scan)]
    assert scan.table.name == "a"


def test_a_mistake_in_a_view_is_listed_once():
    text = "CREATE VIEW v AS SELECT a9 FROM a; INSERT INTO one SELECT * FROM v; INSERT INTO two SELECT * FROM v;"
    with pytest.raises(PipelineErrors) as raised:
        read(SINKS + text)
    assert [m.primary for m in raised.value.mistakes] == ['column "a9" does not exist in "a"']


def test_a_table_must_be_declared_before_it_is_used():
    with pytest.raises(PipelineErrors, match='table "one" does not exist'):
        read(TABLES + "INSERT INTO one SELECT a1 FROM a;" + OUT.format("one"))


def test_an_options_hint_behind_a_table_holds_for_one_query():
    text = "EXPLAIN SELECT a1 FROM a /*+ OPTIONS('scan.startup.mode' = 'earliest-offset') */ AS x"
    pipeline = read(SINKS + text)
    (scan,) = [n for n in in_order(pipeline.explains[0].sinks) if isinstance(n, Scan)]
    assert scan.table.connector.startup.mode == "earliest-offset"
    assert pipeline.tables["a"].connector.startup.mode == "group-offsets"


def test_a_file_is_loaded_with_its_name(tmp_path: Path):
    file = tmp_path / "orders.sql"
    file.write_text("INSERT INTO ${OUT} SELECT 1", encoding="utf-8")
    with pytest.raises(PipelineErrors, match=r'orders.sql:1:13: table "there" does not exist'):
        load(file, {"OUT": "there"})
