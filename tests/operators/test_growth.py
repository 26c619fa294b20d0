"""The work of a small batch follows what it touches, not what is kept; no operator with state is left out."""

from __future__ import annotations

import pytest

from operators.base import KernelDefaults
from tests.operators.growth import GROWTH, Growth
from tests.operators.test_kernels import all_operators

SMALL, LARGE = 600, 6_000


@pytest.mark.parametrize("case", GROWTH.values(), ids=GROWTH)
def test_ten_times_the_state_makes_a_small_batch_dearer_by_a_quarter_at_most(case: Growth):
    before, after = case.cost(SMALL), case.cost(LARGE)
    assert after.statements <= before.statements * 1.25
    assert after.rows_of_statements <= before.rows_of_statements * 1.25
    assert after.rows_of_state <= before.rows_of_state * 1.25 + 1


def test_every_operator_with_state_is_in_the_table():
    keeping = {kind for kind in all_operators() if kind.traces is not KernelDefaults.traces}
    # A join that asks a table stands in a stub that answers it.
    tested = {type(getattr(kernel, "kernel", kernel)) for case in GROWTH.values() for kernel in case.kernels}
    assert {kind.__name__ for kind in keeping - tested} == set()
