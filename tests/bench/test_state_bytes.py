"""The bytes of a state are those of its rows, and a batch seals what it has changed."""

from __future__ import annotations

import pytest

from bench.state_bytes import BATCHES, measure, table
from bench.workloads import GROUP_BY, WORKLOADS, Workload

ROWS_A_KEY = {"group-by": 1, "window": 1, "join": 2}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_state_has_the_rows_of_its_keys(workload: Workload):
    found = measure(workload, 2_000, {0: 1})
    assert found.rows == 2_000 * ROWS_A_KEY[workload.name]
    assert 16 < found.bytes / found.rows < 100


def test_a_batch_seals_what_it_has_changed_and_not_what_is_kept():
    little, much = (measure(GROUP_BY, keys, {0: 1, 200: 1}) for keys in (1_000, 50_000))
    assert little.sealed[0] < 1_000 < little.sealed[200]
    assert much.bytes > 20 * little.bytes
    assert much.sealed[0] < 1.5 * little.sealed[0]
    assert much.sealed[200] < 1.5 * little.sealed[200]


def test_the_table_has_a_line_for_each_state():
    lines = table([measure(GROUP_BY, 100, dict.fromkeys(BATCHES, 1))]).splitlines()
    assert len(lines) == 3
    state, keys, rows = [cell.strip() for cell in lines[2].split(" | ")][:3]
    assert (state, keys) == ("group by, 2 aggregates", "100")
    assert 100 <= int(rows) < 1_000, "rows that are not merged yet count, too"
