"""The golden pipelines: what each construct answers, batch by batch, through SQL, plan, stages and kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from operators.sql import Sql
from service.local.case import run_case
from service.local.files import check_expectations, check_inputs
from service.local.verdict import compare
from service.sql.pipeline import load

CASES = sorted(p.parent for p in (Path(__file__).parent / "pipelines").glob("*/pipeline.sql"))


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_a_pipeline_answers_as_expected(case: Path, shards: int, one_sql: Sql):
    jobs = load(case / "pipeline.sql", {}).jobs
    assert compare(case, run_case(case, jobs, one_sql, shards), one_sql) == []


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_each_file_of_a_pipeline_belongs_to_one_of_its_tables(case: Path):
    jobs = load(case / "pipeline.sql", {}).jobs
    check_inputs(case, jobs)
    check_expectations(case, jobs)


@pytest.fixture(scope="session")
def one_sql() -> Sql:
    return Sql()
