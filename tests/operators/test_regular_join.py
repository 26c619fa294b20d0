"""Regular joins: what each change of a side means for the answer, and the properties of every kernel."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from operators.joins.kinds import JoinKind
from operators.joins.regular_join import RegularJoin
from operators.pieces import STEP
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from tests.operators.properties import (
    SQL,
    Batch,
    Change,
    Row,
    Run,
    every,
    holds_cut,
    holds_oracle,
    holds_restart,
    holds_undo,
)
from tests.operators.shared_hashes import share_hashes

LEFT = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
RIGHT = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", pa.float64())])
KINDS = ("inner", "left", "right", "full", "semi", "anti", "mark")


def joined(kind="inner", residual=None, null_safe=False, **options):
    return RegularJoin(
        left=LEFT,
        right=RIGHT,
        kind=JoinKind(kind),
        left_keys=(0,),
        right_keys=(1,),
        null_safe=(null_safe,),
        residual=residual,
        **options,
    )


def test_an_input_without_columns_is_refused():
    with pytest.raises(ValueError, match="needs a column"):
        RegularJoin(left=LEFT, right=pa.schema([]), kind=JoinKind.INNER, left_keys=(), right_keys=(), null_safe=())


def oracle(kind: str, residual: str | None = None, null_safe: bool = False) -> str:
    on = "t0.c0 IS NOT DISTINCT FROM r.c3" if null_safe else "t0.c0 = r.c3"
    right = "(SELECT c0 AS c2, c1 AS c3, c2 AS c4 FROM t1) r"
    if residual is not None:
        on += " AND " + residual.replace("c0", "t0.c0").replace("c1", "t0.c1")
    if kind in ("semi", "anti"):
        return f"SELECT * FROM t0 WHERE {'NOT' if kind == 'anti' else ''} EXISTS (SELECT 1 FROM {right} WHERE {on})"
    if kind == "mark":
        return f"SELECT *, EXISTS (SELECT 1 FROM {right} WHERE {on}) FROM t0"
    return f"SELECT t0.*, r.* FROM t0 {kind} JOIN {right} ON {on}"


FAILING = (
    "CAST(CASE WHEN c1 = 'x' AND c4 = 0.5 THEN 'bad' WHEN c2 = 'x' OR c4 = 1.5 THEN '1' ELSE '0' END AS INTEGER) = 1"
)
"""A condition that is true, false, or cannot be computed."""


def undecided_oracle(kind: str) -> str:
    """The join ON equal keys and FAILING: a row with an undecided pair is neither alone nor matched."""
    condition = FAILING.replace("c1", "t0.c1")
    right = "(SELECT c0 AS c2, c1 AS c3, c2 AS c4 FROM t1) r"
    holds = f"t0.c0 = r.c3 AND TRY({condition})"
    fails = f"(t0.c0 = r.c3 AND TRY(struct_pack(a := {condition})) IS NULL)"
    match, perhaps = f"SELECT 1 FROM {right} WHERE {holds}", f"SELECT 1 FROM {right} WHERE {holds} OR {fails}"
    lefts = f"SELECT t0.*, NULL, NULL, NULL FROM t0 WHERE NOT EXISTS ({perhaps})"
    rights = f"SELECT NULL, NULL, r.* FROM {right} WHERE NOT EXISTS (SELECT 1 FROM t0 WHERE {holds} OR {fails})"
    pairs = f"SELECT t0.*, r.* FROM t0 JOIN {right} ON {holds}"
    return {
        "inner": pairs,
        "left": f"{pairs} UNION ALL {lefts}",
        "right": f"{pairs} UNION ALL {rights}",
        "full": f"{pairs} UNION ALL {lefts} UNION ALL {rights}",
        "semi": f"SELECT * FROM t0 WHERE EXISTS ({match})",
        "anti": f"SELECT * FROM t0 WHERE NOT EXISTS ({perhaps})",
        "mark": f"SELECT *, EXISTS ({match}) FROM t0 WHERE EXISTS ({match}) OR NOT EXISTS ({perhaps})",
    }[kind]


def generated(seed: int, batches: int, append: bool = False, keys: int = 6) -> list[Batch]:
    rng = random.Random(seed)
    there: list[list[Row]] = [[], []]
    result = []
    for _ in range(batches):
        changes = []
        for _ in range(rng.choice([0, 1, 5, 20])):
            port = rng.randrange(2)
            if there[port] and not append and rng.random() < 0.45:
                changes.append(Change(there[port].pop(rng.randrange(len(there[port]))), -1, port))
                continue
            key = rng.choice([None, *range(keys)])
            if port == 0:
                row: Row = (key, rng.choice(["x", "", None]))
            else:
                row = (rng.choice(["x", "", None]), key, rng.choice([0.5, 1.5, None]))
            there[port].append(row)
            changes.append(Change(row, 1, port))
        result.append(Batch(changes))
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("residual", [None, "c1 = c2"])
def test_joins_equal_a_batch_query(kind, residual):
    run = holds_oracle((joined(kind, residual),), generated(1, 25), oracle(kind, residual))
    assert run.unmatched_retractions == 0


def without_keys(kind: str) -> RegularJoin:
    return RegularJoin(left=LEFT, right=RIGHT, kind=JoinKind(kind), left_keys=(), right_keys=(), null_safe=())


@pytest.mark.parametrize("kind", ["semi", "anti", "mark"])
def test_a_condition_that_compares_nothing_asks_whether_there_is_any_row(kind):
    answer = {
        "semi": "SELECT * FROM t0 WHERE EXISTS (FROM t1)",
        "anti": "SELECT * FROM t0 WHERE NOT EXISTS (FROM t1)",
        "mark": "SELECT *, EXISTS (FROM t1) FROM t0",
    }[kind]
    batches = [
        Batch([Change((1, "x"), 1, 0), Change((None, None), 1, 0)]),
        Batch([Change(("a", 1, 0.5), 1, 1), Change(("b", None, None), 2, 1)]),
        Batch([Change(("a", 1, 0.5), -1, 1), Change((2, "y"), 1, 0)]),
        Batch([Change(("b", None, None), -2, 1)]),
        Batch([Change((1, "x"), -1, 0)]),
    ]
    run = holds_oracle((without_keys(kind),), batches, answer)
    assert run.unmatched_retractions == 0


@pytest.mark.parametrize("append", [True, False])
@pytest.mark.parametrize("kernel", [*(joined(kind) for kind in ("semi", "anti", "mark")), without_keys("anti")])
def test_right_rows_of_which_only_the_key_is_asked_are_one_row_of_state(kernel, append):
    run = Run((replace(kernel, append=(append, append)),))
    for start in range(3):
        run(Batch([Change((f"y{i}", 1, 0.5), 1, 1) for i in range(start, 30, 3)]))
    assert run.state_rows() == 1


def test_a_row_lives_on_with_each_match_of_its_key_under_a_ttl():
    run = Run((joined("semi", ttl=(100, 0)),))
    run(Batch([Change((1, "x"), 1, 0), Change(("a", 1, 0.5), 1, 1)], now=0))
    run(Batch([Change(("b", 1, 0.5), 1, 1)], now=90))
    run(Batch([Change((1, "x"), -1, 0)], now=150))
    assert run.unmatched_retractions == 0
    assert not +run.applied


@pytest.mark.parametrize("kind", KINDS)
def test_joins_of_append_only_inputs_equal_a_batch_query(kind):
    holds_oracle((joined(kind, append=(True, True)),), generated(2, 15, append=True), oracle(kind), restart=True)


@pytest.mark.parametrize("kind", KINDS)
def test_null_equals_null_where_the_condition_says_so(kind):
    holds_oracle((joined(kind, null_safe=True),), generated(3, 15), oracle(kind, null_safe=True))


@pytest.mark.parametrize("kind", KINDS)
def test_joins_do_not_depend_on_how_the_log_is_cut(kind):
    changes = [c for batch in generated(4, 12) for c in batch.changes]
    holds_cut((joined(kind),), changes, [every(1), every(7), every(1000)])


@pytest.mark.parametrize("kind", KINDS)
def test_joins_leave_nothing_when_everything_is_retracted(kind):
    holds_undo((joined(kind, "c1 = c2"),), generated(5, 8))


@pytest.mark.parametrize("kind", ["inner", "full", "mark"])
def test_joins_survive_a_restart_bit_by_bit(kind):
    holds_restart((joined(kind),), generated(6, 20))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_share_a_hash_are_kept_apart(kind, monkeypatch):
    share_hashes(monkeypatch)
    holds_oracle((joined(kind),), generated(7, 15), oracle(kind))
    holds_undo((joined(kind),), generated(7, 8))


def test_without_an_equality_all_rows_are_compared():
    kernel = RegularJoin(
        left=LEFT, right=RIGHT, kind=JoinKind.LEFT, left_keys=(), right_keys=(), null_safe=(), residual="c0 > c3"
    )
    query = "SELECT t0.*, t1.* FROM t0 LEFT JOIN t1 ON t0.c0 > t1.c1"
    holds_oracle((kernel,), generated(8, 15), query)


def left(key, value, weight=1):
    return Change((key, value), weight, 0)


def right(key, value, weight=1):
    return Change((value, key, None), weight, 1)


A1 = (1, "a", None, None, None)
AB, AC = (1, "a", "b", 1, None), (1, "a", "c", 1, None)


def replay(kernel, *changes, now=()):
    run = Run((kernel,))
    times = [*now, *[now[-1] if now else 0] * len(changes)]
    for change, time in zip(changes, times, strict=False):
        run(Batch(change if isinstance(change, list) else [change], now=time))
    return run


def test_an_outer_row_is_padded_until_its_first_match_and_again_after_its_last():
    run = replay(joined("left"), left(1, "a"), right(1, "b"), right(1, "c"), right(1, "b", -1), right(1, "c", -1))
    assert run.log == [(A1, 1), (A1, -1), (AB, 1), (AC, 1), (AB, -1), (AC, -1), (A1, 1)]


def test_a_match_and_its_end_in_one_batch_say_nothing():
    run = replay(joined("left"), left(1, "a"), [right(1, "b"), right(1, "b", -1)])
    assert run.log == [(A1, 1)]


def test_a_semi_join_emits_its_row_at_the_first_match_and_withdraws_it_with_the_last():
    run = replay(joined("semi"), left(1, "a"), right(1, "b"), right(1, "c"), right(1, "b", -1), right(1, "c", -1))
    assert run.log == [((1, "a"), 1), ((1, "a"), -1)]


def test_an_anti_join_does_the_reverse():
    run = replay(joined("anti"), left(1, "a"), right(1, "b"), right(1, "c"), right(1, "b", -1), right(1, "c", -1))
    assert run.log == [((1, "a"), 1), ((1, "a"), -1), ((1, "a"), 1)]


def test_a_retraction_without_a_row_is_dropped_and_counted():
    run = replay(joined("left"), right(1, "b"), left(1, "a", -1), left(1, "a"))
    assert (run.log, run.unmatched_retractions) == ([(AB, 1)], 1)


@pytest.mark.parametrize("append", [(False, False), (True, True)])
def test_a_row_is_gone_exactly_when_the_time_to_live_of_its_side_has_passed(append):
    kernel = joined(append=append, ttl=(100, 0))
    run = replay(kernel, left(1, "a"), right(1, "b"), right(1, "c"), now=(0, 99, 100))
    assert run.log == [(AB, 1)]


def test_a_new_match_of_an_outer_row_counts_as_a_write():
    run = replay(joined("left", ttl=(100, 0)), left(1, "a"), right(1, "b"), right(1, "c"), now=(0, 99, 198))
    assert run.log == [(A1, 1), (A1, -1), (AB, 1), (AC, 1)]


def test_a_refresh_keeps_a_row_alive_and_travels_on():
    run = replay(joined(ttl=(100, 0)), right(1, "b"), left(1, "a"), left(1, "a", 0), right(1, "c"), now=(0, 0, 99, 198))
    assert run.log == [(AB, 1), (AB, 0), (AC, 1)]


def test_state_with_a_time_to_live_is_swept():
    run = Run((joined("left", ttl=(100, 200)),))
    for at in range(30):
        run(Batch([left(at, "a"), right(at, "b")], now=at * 10))
    run(Batch([], now=1000))
    assert run.state_rows() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_not_answered_as_one_without_a_match_while_the_condition_of_a_pair_cannot_be_computed(kind):
    kernel = joined(kind, FAILING, doubts=kind not in ("inner", "semi"))
    run = holds_oracle((kernel,), generated(9, 40, keys=3), undecided_oracle(kind), restart=True)
    assert run.unmatched_retractions == 0
    holds_undo((kernel,), generated(10, 12, keys=3))
    holds_cut((kernel,), [c for batch in generated(11, 12, keys=3) for c in batch.changes], [every(1), every(50)])


@pytest.mark.parametrize(
    ("kind", "dead"),
    [*((kind, {0}) for kind in KINDS if kind not in ("right", "full")), ("right", {1}), ("full", {0, 1})],
)
def test_the_row_that_the_answer_lacks_is_a_dead_letter_once(kind, dead):
    kernel = joined(kind, "CAST(c1 AS INTEGER) > 0", doubts=True)
    run = replay(kernel, [left(1, "a"), left(2, "7")], right(1, "b"), right(1, "b"), left(1, "a", 0), right(1, "b", -2))
    rows = {0: (1, "a"), 1: ("b", 1, None)}
    assert run.dead == [(port, (*rows[port], 1)) for port in sorted(dead)]


def test_state_of_degrees_without_doubts_is_refused_by_its_version():
    assert (joined("left", FAILING).version, joined("left", FAILING, doubts=True).version) == (1, 3)


def test_state_of_whole_right_rows_is_refused_where_they_are_counted_by_key():
    assert [joined(kind).version for kind in ("inner", "semi", "anti", "mark")] == [1, 2, 2, 2]
    assert joined("semi", "c1 = c2").version == 1


def test_a_condition_that_cannot_be_computed_is_no_match():
    run = replay(joined(residual="1 // c3 = 1"), [left(0, "a"), left(1, "a")], [right(0, "b"), right(1, "b")])
    assert run.log == [(AB, 1)]


@pytest.mark.parametrize(("residual", "rows"), [(None, 3_000**2), ("c1 || c2 = 'xy'", 0)])
def test_pairs_of_a_hot_key_come_in_pieces(residual: str | None, rows: int):
    n, kernel = 3_000, joined(residual=residual, append=(True, True))
    key, weight, text = np.ones(n, np.int64), np.ones(n, np.int64), pa.array(["x" * 20] * n)
    sides = [
        pa.table([key, text, weight], names=["c0", "c1", "_weight"]),
        pa.table([text, key, np.ones(n), weight], names=["c0", "c1", "c2", "_weight"]),
    ]
    state = State.open(kernel.traces(), None, lambda block: pa.py_buffer(b""))
    steps = kernel.steps(state, sides, Clock(0, MIN_TIME, MIN_TIME), SQL)
    found = 0
    for step in steps:
        assert step.changes.nbytes <= 1.1 * STEP
        found += step.changes.num_rows
    assert found == rows
