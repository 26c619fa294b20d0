"""Every operator has the six properties, and no operator is left out."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache

import pytest

import operators
from operators.base import KernelDefaults
from tests.operators.kernels import CASES, Case, key_columns, sizes
from tests.operators.properties import (
    Batch,
    Change,
    Replay,
    holds_bound,
    holds_cut,
    holds_end,
    holds_expected,
    holds_opened,
    holds_spread,
    replay,
)
from tests.operators.shared_hashes import share_hashes
from tests.operators.test_lookup_join import Asking

each_case = pytest.mark.parametrize("name", CASES)

SEEDS = (1, 2)
"""Those of the logs. One is cut into batches of one, two and twenty rows in turn, one into batches of seven."""

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


@cache
def replayed(name: str, seed: int) -> Replay:
    """Run the batches of a seed and the end of the case, once for all properties that are asked of it."""
    case = CASES[name]
    batches = batches_of(case, seed)
    return replay(case.kernels, [*batches, *case.end(batches)])


def test_every_operator_is_in_the_table():
    kernels = [kernel for case in CASES.values() for kernel in case.kernels]
    tested = {type(kernel.kernel if isinstance(kernel, Asking) else kernel) for kernel in kernels}
    missing = sorted(kind.__name__ for kind in set(all_operators()) - tested)
    assert not missing, "add a case to tests/operators/kernels.py"


@each_case
@pytest.mark.parametrize("seed", SEEDS)
def test_oracle_the_changes_add_up_to_the_answer_over_all_rows(name: str, seed: int):
    case = CASES[name]
    holds_expected(replayed(name, seed), len(batches_of(case, seed)), case.expected)


@each_case
def test_collide_keys_that_share_a_hash_are_kept_apart(name: str, monkeypatch: pytest.MonkeyPatch):
    share_hashes(monkeypatch)
    case = CASES[name]
    batches = batches_of(case, 1)
    holds_expected(replay(case.kernels, batches), len(batches), case.expected)


@each_case
def test_cut_how_a_log_is_cut_does_not_change_the_answer(name: str):
    case = CASES[name]

    def cut_by(seed: int) -> Callable[[Sequence[Change]], list[Batch]]:
        def cut(changes: Sequence[Change]) -> list[Batch]:
            batches = case.cut(changes, sizes(seed))
            return [*batches, *([] if case.undone else case.end(batches))]

        return cut

    log = case.log(1)
    answer = holds_cut(case.kernels, log, [cut_by(seed) for seed in (0, 2, 3)], case.uncut)
    in_turn = replayed(name, 1).outcomes[len(cut_by(1)(log)) - 1]
    assert case.uncut(in_turn.applied) == answer


@each_case
@pytest.mark.parametrize("seed", SEEDS)
def test_undo_nothing_is_left_at_the_end(name: str, seed: int):
    case, found = CASES[name], replayed(name, seed)
    holds_end(replay(case.ending, found.batches) if case.ending else found, undone=case.undone)


@each_case
def test_restart_a_state_opened_again_answers_the_same(name: str):
    holds_opened(replayed(name, 1))


@each_case
def test_clip_over_how_many_states_keys_are_spread_does_not_change_the_answer(name: str):
    holds_spread(replayed(name, 2), key_columns(CASES[name].kernels[-1]), None, [2, 3, 1, 1, 7])


@pytest.mark.parametrize("name", WIDE)
def test_clip_slots_may_be_chosen_by_one_column_of_the_key(name: str):
    keys = key_columns(CASES[name].kernels[-1])
    holds_spread(replayed(name, 2), keys, (len(keys[0]) - 1,), [2, 3, 1, 4])


@each_case
@pytest.mark.parametrize("seed", [1, 6])
def test_bound_state_is_no_larger_than_what_may_still_matter(name: str, seed: int):
    case = CASES[name]
    batches = batches_of(case, seed)
    found = replayed(name, seed) if seed in SEEDS else replay(case.kernels, batches)
    holds_bound(found, len(batches), case.bound)
