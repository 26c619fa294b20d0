"""Every operator has the six properties, and no operator is left out."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass

import pytest

import operators
from operators.base import KernelDefaults
from tests.operators.kernels import CASES, Case, key_columns, sizes
from tests.operators.properties import (
    Batch,
    Change,
    holds_bound,
    holds_clip,
    holds_cut,
    holds_end,
    holds_expected,
    holds_restart,
)
from tests.operators.shared_hashes import share_hashes
from tests.operators.test_lookup_join import Asking

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

WIDE = {name: case for name, case in CASES.items() if len(key_columns(case.kernels[-1])[0]) > 1}
"""Those whose key has several columns."""


def all_operators() -> Iterator[type[KernelDefaults]]:
    """Yield every kernel: the dataclasses that extend KernelDefaults, not the bases that they share."""
    for module in pkgutil.walk_packages(operators.__path__, "operators."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, KernelDefaults) and is_dataclass(value):
                yield value


def batches_of(case: Case, seed: int) -> list[Batch]:
    return case.cut(case.log(seed), sizes(seed))


def test_every_operator_is_in_the_table():
    kernels = [kernel for case in CASES.values() for kernel in case.kernels]
    tested = {type(kernel.kernel if isinstance(kernel, Asking) else kernel) for kernel in kernels}
    missing = sorted(kind.__name__ for kind in set(all_operators()) - tested)
    assert not missing, "add a case to tests/operators/kernels.py"


@each_case
@pytest.mark.parametrize("seed", [1, 2])
def test_oracle_the_changes_add_up_to_the_answer_over_all_rows(case: Case, seed: int):
    holds_expected(case.kernels, batches_of(case, seed), case.expected)


@each_case
def test_collide_keys_that_share_a_hash_are_kept_apart(case: Case, monkeypatch: pytest.MonkeyPatch):
    share_hashes(monkeypatch)
    holds_expected(case.kernels, batches_of(case, 1), case.expected)


@each_case
def test_cut_how_a_log_is_cut_does_not_change_the_answer(case: Case):
    log = case.log(3)

    def cut_by(seed: int) -> Callable[[Sequence[Change]], list[Batch]]:
        def cut(changes: Sequence[Change]) -> list[Batch]:
            batches = case.cut(changes, sizes(seed))
            return [*batches, *([] if case.undone else case.end(batches))]

        return cut

    holds_cut(case.kernels, log, [cut_by(seed) for seed in range(4)], case.uncut)


@each_case
def test_undo_nothing_is_left_at_the_end(case: Case):
    batches = batches_of(case, 5)
    holds_end(case.ending or case.kernels, batches, case.end(batches), undone=case.undone)


@each_case
def test_restart_a_state_opened_again_answers_the_same(case: Case):
    batches = batches_of(case, 1)
    holds_restart(case.kernels, [*batches, *case.end(batches)])


@each_case
@pytest.mark.parametrize("counts", [[2, 3, 1, 4], [1, 1, 7]])
def test_clip_over_how_many_states_keys_are_spread_does_not_change_the_answer(case: Case, counts):
    batches = batches_of(case, 6)
    holds_clip(case.kernels, [*batches, *case.end(batches)], key_columns(case.kernels[-1]), None, counts)


@pytest.mark.parametrize("case", WIDE.values(), ids=WIDE)
def test_clip_slots_may_be_chosen_by_one_column_of_the_key(case: Case):
    batches = batches_of(case, 6)
    keys = key_columns(case.kernels[-1])
    holds_clip(case.kernels, [*batches, *case.end(batches)], keys, (len(keys[0]) - 1,), [2, 3, 1, 4])


@each_case
@pytest.mark.parametrize("seed", [4, 5])
def test_bound_state_is_no_larger_than_what_may_still_matter(case: Case, seed: int):
    holds_bound(case.kernels, batches_of(case, seed), case.bound)
