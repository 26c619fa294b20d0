"""How a stream is cut into batches does not change what its changes add up to: every golden case, cut in other ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copy

import pytest

from operators.sql import Sql
from service.local.case import Outcome, run_case
from service.local.changelog import Change, applied
from service.local.expected import read
from service.plan.program import Output
from service.sql.pipeline import load

CASES = Path(__file__).parent.parent / "pipelines"
CUT = re.compile(r"-{3,}\s*$")

OF_TIME = {
    *("window_late", "session_late", "window_idle_partition", "window_processing_time"),
    *("top_n_ttl", "group_by_ttl", "join_ttl", "temporal_join_proctime", "temporal_join_side_input"),
    *("stream_window_processing", "over_processing", "interval_joins_in_a_row", "interval_join_proctime_in_a_row"),
    *("window_early", "window_late_firing", "window_top_n_early", "window_over_top_n"),
    *("window_distinct", "window_over_distinct", "window_top_n_retract", "top_n_several"),
    *("lookup_join", "lookup_join_cached", "lookup_join_using"),
    *("temporal_join_proctime_retract", "window_top_n_early", "window_top_n_retract", "top_n_several"),
    *("window_distinct", "window_over_distinct", "processing_time_behind"),
}
"""Cases about processing time and lateness, which cuts do change."""


def in_one_batch(lines: list[str]) -> list[str]:
    return [line for line in lines if not CUT.match(line)]


def row_by_row(lines: list[str]) -> list[str]:
    """Each row or record in a batch of its own; a rule and what is said with @ stay with the row before them."""
    cut: list[str] = []
    for number, line in enumerate(in_one_batch(lines)):
        alone = number and not line.startswith(("@", "#", "|--", "|  ")) and not cut[-1].startswith("#")
        cut += ["---", line] if alone else [line]
    return cut


Answers = dict[str, list[tuple[str, ...]]]


def answers(outcome: Outcome) -> Answers:
    return {name: applied(outcome.changes[name], o.key) for name, o in outcome.tables.items()}


@pytest.fixture(scope="module")
def sql() -> Sql:
    return Sql()


def answers_as_given(case: str, tables: Mapping[str, Output]) -> Answers:
    """The answers of a case in the batches of its own files: `tests/test_pipelines.py` holds that it changes its tables
    as its files say."""
    found = {}
    for name, output in tables.items():
        batches = read(CASES / case / f"{name}.changes")
        changes = [[Change(row[0], row[1:]) for section in sections for row in section.rows] for sections in batches]
        found[name] = applied(changes, output.key)
    return found


@pytest.mark.parametrize("cut", [in_one_batch, row_by_row])
@pytest.mark.parametrize("case", sorted(p.name for p in CASES.iterdir() if p.name not in OF_TIME))
def test_another_cut_adds_up_to_the_same_rows(
    case: str,
    cut: Callable[[list[str]], list[str]],
    tmp_path: Path,
    sql: Sql,
):
    for path in (CASES / case).iterdir():
        if path.suffix in (".rows", ".records"):
            (tmp_path / path.name).write_text("\n".join(cut(path.read_text().splitlines())))
        elif path.suffix == ".sql":
            copy(path, tmp_path)
    jobs = load(tmp_path / "pipeline.sql", {}).jobs
    recut = run_case(tmp_path, jobs, sql)
    if any(recut.late):
        pytest.skip("this cut makes rows late, which no answer has to hold")
    assert answers(recut) == answers_as_given(case, recut.tables)
