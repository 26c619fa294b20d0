"""What `explain` says of each step agrees with the program that is run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from service.plan.explain import explain
from service.plan.lowering.lower import compile_job
from service.sql.pipeline import load

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = [
    *sorted((ROOT / "examples").rglob("*.sql")),
    *sorted((ROOT / "tests" / "pipelines").glob("*/pipeline.sql")),
]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda p: str(p.relative_to(ROOT).parent / p.stem))
def test_every_operator_and_every_source_belongs_to_one_step_or_sink(path: Path):
    for job in load(path, {}).jobs:
        explained, program = explain(job), compile_job(job)
        lists = [s.operators for s in explained.steps] + [s.operators for s in explained.sinks]
        named = Counter(name for names in lists for name in names)
        assert named == Counter(o.name for o in program.operators)
        assert sorted(filter(None, (s.table for s in explained.steps))) == sorted(s.table.name for s in program.sources)


def test_a_step_names_its_partial_totals_and_a_sink_its_net_changes():
    (job,) = load(ROOT / "examples" / "spending_by_city" / "pipeline.sql", {}).jobs
    explained = explain(job)
    assert {s.kind: s.operators for s in explained.steps if s.operators} == {
        "join": ["join_1"],
        "aggregate": ["group_partial_1", "group_by_1"],
        "filter": ["calc_1"],
    }
    assert [s.operators for s in explained.sinks] == [["consolidate_1"]]
