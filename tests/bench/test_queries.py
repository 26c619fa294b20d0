"""The query files are taken by Tailrace as they stand, and nothing is left to fill in."""

from __future__ import annotations

import pytest

from bench.cases import CASES, MORE, NEXMARK, QUERIES
from bench.native_spark import QUERIES as NATIVE
from bench.native_spark import Options
from service.sql.pipeline import read


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case.name)
def test_a_case_is_one_job(case):
    text = case.sql(1_000, "broker:9092", "group", "output")
    assert "${" not in text
    assert len(read(text).jobs) == 1


NOT_YET = {"q9", "q11", "q18", "q19"}
"""Queries of Nexmark with a construct that is planned."""


@pytest.mark.parametrize("case", [case for case in NEXMARK if case.name not in NOT_YET], ids=lambda case: case.name)
def test_a_query_of_nexmark_is_one_job(case):
    text = case.sql(1_000, "broker:9092", "group", "output")
    assert "${" not in text
    assert len(read(text).jobs) == 1


IN_CASES = {name for case in (*CASES, *MORE) for name in (*case.head, case.query)}
"""The files that cases are put together from."""


@pytest.mark.parametrize("name", sorted({path.stem for path in QUERIES.glob("*.sql")} - IN_CASES))
def test_a_query_file_of_no_case_is_right_by_itself(name):
    names = ("PAYMENTS", "ORDERS", "SHIPMENTS", "OUTPUT", "GROUP", "BOOTSTRAP")
    assert read((QUERIES / f"{name}.sql").read_text(), dict.fromkeys(names, "x")).jobs


def test_the_native_program_has_a_query_for_each_case_that_says_so():
    assert {case.query for case in CASES if case.native} == set(NATIVE)


def test_the_native_program_reads_topics_and_group_from_the_query_file():
    case = next(case for case in CASES if case.name == "interval-join")
    options = Options(case.sql(1_000, "broker:9092", "some-group", "some-output"))
    assert options.group == "some-group"
    assert options.topics == [topic.name(1_000) for topic in case.topics]
    assert options["results"]["topic"] == "some-output"
