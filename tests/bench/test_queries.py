"""The query files are taken by Tailrace as they stand, and nothing is left to fill in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.cases import CASES, MORE, NEXMARK, QUERIES
from bench.compare.nexmark import NAMES as COMPARED
from bench.latency import CASE as LATENCY
from bench.native_spark import QUERIES as NATIVE
from bench.native_spark import Options
from bench.state_cost import CASE as STATE
from bench.workloads import WORKLOADS
from service.plan.nodes import Scan
from service.plan.walk import in_order
from service.sql.pipeline import read

EVERY = (*CASES, *MORE, *NEXMARK)
ENDLESS = (LATENCY, STATE, *(workload.case for workload in WORKLOADS))
"""Cases whose caller names the topics."""


@pytest.mark.parametrize("case", [*EVERY, *ENDLESS], ids=lambda case: case.name)
def test_a_case_is_one_job(case, tmp_path):
    topics = case.names(1_000) or dict.fromkeys(("PAYMENTS", "ORDERS", "SHIPMENTS"), "topic")
    topics |= case.written(tmp_path)
    text = case.sql("broker:9092", "group", "output", topics)
    assert "${" not in text
    (job,) = read(text).jobs
    streams = [n.table for n in in_order(job.sinks) if isinstance(n, Scan) and n.table.lookup is None]
    bounded = {table.connector.bounded.mode for table in streams}
    assert bounded == {"unbounded" if case in ENDLESS else "latest-offset"}


def test_every_query_file_is_part_of_a_case_or_only_compared():
    used = {name for case in (*EVERY, *ENDLESS) for name in (*case.head, *case.flink_head, case.query)}
    used |= {f"nexmark/{name}" for name in COMPARED}
    assert {path.relative_to(QUERIES).with_suffix("").as_posix() for path in QUERIES.rglob("*.sql")} == used


def test_the_native_program_has_a_query_for_each_case_that_says_so():
    assert {case.query for case in CASES if case.native} == set(NATIVE)


def test_the_native_program_reads_topics_and_group_from_the_query_file():
    case = next(case for case in CASES if case.name == "interval-join")
    options = Options(case.sql("broker:9092", "some-group", "some-output", case.names(1_000)))
    assert options.group == "some-group"
    assert options.topics == [topic.name(1_000) for topic in case.topics]
    assert options["results"]["topic"] == "some-output"


def test_flink_gets_the_side_input_by_its_own_connector_and_all_else_word_for_word(tmp_path):
    case = next(case for case in NEXMARK if case.name == "q13")
    topics = case.names(1_000) | case.written(tmp_path)
    ours, flinks = (c.sql("broker:9092", "group", "output", topics) for c in (case, case.for_flink()))
    assert "'jdbc'" in ours
    assert "'side-input'" in flinks
    statements = zip(*(re.sub("--.*", "", text).split("CREATE ") for text in (ours, flinks)), strict=True)
    (own,) = (one for one, other in statements if one != other)
    assert own.startswith("TABLE side_input")
    assert Path(topics["TEXT"]).read_text().splitlines()[:2] == ["0,value 0", "1,value 1"]


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_a_case_without_tables_for_flink_has_the_same_text_on_every_engine(case):
    if not case.flink_head:
        assert case.for_flink() == case
