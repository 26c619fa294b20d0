"""The pairs of a join come out in pieces of a bounded size, and what follows takes them piece by piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from operators import pieces
from operators.joins import matching
from operators.ranking import top_n
from operators.sql import Sql
from service.local.case import Outcome, run_case
from service.local.changelog import applied
from service.runtime.shard_operators import ShardOperators
from service.sql.pipeline import load

CASES = Path(__file__).parent.parent / "pipelines"
JOINS = sorted(p.name for p in CASES.iterdir() if "join" in p.name)

TABLES = """
CREATE TABLE a (k BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json');
CREATE TABLE b (k BIGINT, w BIGINT) WITH ('connector' = 'kafka', 'topic' = 'b', 'format' = 'json');
"""

COUNTED = """
CREATE TABLE totals (k BIGINT, n BIGINT, most BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO totals
SELECT a.k, COUNT(*), MAX(a.v * b.w) FROM a JOIN b ON a.k = b.k AND a.v + b.w <> 7 GROUP BY a.k;
"""


def answers(outcome: Outcome) -> dict[str, list[tuple[str, ...]]]:
    return {name: applied(outcome.changes[name], o.key) for name, o in outcome.tables.items()}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pieces of a few bytes; returns what will hold the number of pieces of each operator's answer."""
    monkeypatch.setattr(matching, "PAIRS", 2)
    monkeypatch.setattr(matching, "CANDIDATES", 2)
    monkeypatch.setattr(matching, "_FEW", 0)
    monkeypatch.setattr(matching, "STEP", 32)
    monkeypatch.setattr(pieces, "STEP", 32)
    counted: list[int] = []
    leaving = ShardOperators._leaving

    def noted(self, operator, step, *rest):
        counted.append(step.changes.num_rows)
        return leaving(self, operator, step, *rest)

    monkeypatch.setattr(ShardOperators, "_leaving", noted)
    return counted


@pytest.mark.parametrize("case", JOINS)
def test_a_join_in_pieces_answers_as_in_one(case: str, request: pytest.FixtureRequest) -> None:
    jobs = load(CASES / case / "pipeline.sql", {}).jobs
    whole = answers(run_case(CASES / case, jobs, Sql()))
    request.getfixturevalue("tiny")
    assert answers(run_case(CASES / case, jobs, Sql())) == whole


def test_what_follows_a_join_takes_its_pairs_piece_by_piece(tmp_path: Path, tiny: list[int]) -> None:
    (tmp_path / "pipeline.sql").write_text(TABLES + COUNTED)
    for name, column in (("a", "v"), ("b", "w")):
        rows = [f'{{"k": {i % 2}, "{column}": {i}}}' for i in range(20)]
        (tmp_path / f"{name}.records").write_text("\n".join(rows) + "\n")
    (tmp_path / "totals.rows").write_text("")
    outcome = run_case(tmp_path, load(tmp_path / "pipeline.sql", {}).jobs, Sql())
    pairs = [(k, i * j) for k in (0, 1) for i in range(k, 20, 2) for j in range(k, 20, 2) if i + j != 7]
    expected = [
        (str(k), str(sum(p[0] == k for p in pairs)), str(max(p[1] for p in pairs if p[0] == k))) for k in (0, 1)
    ]
    assert [tuple(row) for row in answers(outcome)["totals"]] == expected
    assert max(tiny) < 20
    assert sum(rows > 0 for rows in tiny) > 40


BEST = """
CREATE TABLE best (k BIGINT, v BIGINT, w BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'best', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO best
SELECT k, v, w FROM (
  SELECT a.k, a.v, b.w, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY b.w DESC, a.v) AS place
  FROM a JOIN b ON a.k = b.k
) WHERE place <= 1;
"""


def test_of_each_piece_of_a_join_the_top_rows_alone_wait_for_the_others(
    tmp_path: Path, tiny: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "STEP", 320)
    monkeypatch.setattr(pieces, "STEP", 320)
    monkeypatch.setattr(top_n, "SPARED", 1)
    waited: list[int] = []
    advance = top_n.TopNOperator.advance

    def noted(self, state, inputs, clock, sql):
        waited.append(inputs[0].num_rows)
        return advance(self, state, inputs, clock, sql)

    monkeypatch.setattr(top_n.TopNOperator, "advance", noted)
    (tmp_path / "pipeline.sql").write_text(TABLES + BEST)
    for name, column in (("a", "v"), ("b", "w")):
        (tmp_path / f"{name}.records").write_text("".join(f'{{"k": 1, "{column}": {i}}}\n' for i in range(20)))
    (tmp_path / "best.rows").write_text("")
    outcome = run_case(tmp_path, load(tmp_path / "pipeline.sql", {}).jobs, Sql())
    assert [tuple(row) for row in answers(outcome)["best"]] == [("1", "0", "19")]
    joined, found = sum(tiny), sum(rows > 0 for rows in tiny)
    assert joined > 400
    assert sum(waited) <= found < 400
