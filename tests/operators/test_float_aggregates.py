"""Variances and sums of floating-point numbers: to their last digits, and after NaN and Infinity are retracted."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest

from operators.aggregates.functions import DEVIATIONS, AggregateSpec
from operators.over.over import Frame, OverCallSpec, OverOperator
from operators.time import END_OF_TIME
from operators.windows.shapes import Hop
from operators.windows.window_aggregate import WindowAggregateOperator
from operators.windows.window_partial import WindowPartial
from tests.operators.properties import Batch, Change, Row, Run
from tests.operators.test_group_by import grouping
from tests.operators.test_window_aggregate import STAMP, at

INPUT = pa.schema([("c0", pa.string()), ("c1", pa.float64())])
VARIANCE = AggregateSpec(function="VAR_POP", arguments=(1,))
SPREAD = [(AggregateSpec(function=f, arguments=(1,)), pa.float64(), "") for f in DEVIATIONS]
SUMS = [(AggregateSpec(function=f, arguments=(1,)), pa.float64(), "") for f in ("SUM", "AVG")]
FAR_AWAY = {
    "a thousand millions": 1e9,
    "seconds since 1970": 1.7e9,
    "milliseconds since 1970": 1.7e12,
    "around zero": 0.0,
    "tiny": 1e-30,
}


def exactly(values: Sequence[float]) -> dict[str, float]:
    """All deviations, from fractions."""
    parts = [Fraction(v) for v in values]
    apart = len(parts) * sum(v * v for v in parts) - sum(parts) ** 2
    population = float(apart / len(parts) ** 2)
    sample = float(apart / (len(parts) * (len(parts) - 1)))
    variances = {"VAR_POP": population, "VAR_SAMP": sample, "VARIANCE": sample}
    deviations = {"STDDEV_POP": population, "STDDEV_SAMP": sample, "STDDEV": sample}
    return variances | {name: math.sqrt(value) for name, value in deviations.items()}


def numbers(row: Row) -> list[float]:
    return [math.nan if v == "NaN" else v for v in row]


def answer(run: Run) -> list[float]:
    ((row, times),) = run.applied.items()
    assert times == 1
    return numbers(row[1:])


def changes(values: Sequence[float], weight: int = 1) -> list[Change]:
    return [Change(("a", v), weight) for v in values]


def near(center: float, count: int, width: float = 1.0) -> list[float]:
    rng = random.Random(count)
    return [center + width * rng.gauss(0, 1) for _ in range(count)]


@pytest.mark.parametrize("append", [True, False])
@pytest.mark.parametrize("size", [3, 60])
@pytest.mark.parametrize("center", FAR_AWAY.values(), ids=FAR_AWAY)
def test_a_variance_far_smaller_than_its_values_keeps_its_digits(center, size, append):
    values = near(center, 60, 1e-31 if center == 1e-30 else 1.0)
    run = Run(grouping((0,), SPREAD, append, schema=INPUT))
    for start in range(0, 60, size):
        run(Batch(changes(values[start : start + size])))
    assert answer(run) == pytest.approx([exactly(values)[f] for f in DEVIATIONS], rel=1e-7)


@pytest.mark.parametrize("together", [True, False])
def test_a_value_that_is_retracted_leaves_nothing_in_a_variance(together):
    values, gone = near(3.0, 20), [1e9, -7e11, 0.1, 1e9]
    run = Run(grouping((0,), SPREAD, schema=INPUT))
    for batch in [[*values, *gone]] if together else [gone, values]:
        run(Batch(changes(batch)))
    run(Batch(changes(gone, -1)))
    assert answer(run) == pytest.approx([exactly(values)[f] for f in DEVIATIONS], rel=1e-5)
    run(Batch([*changes([4e9, 4e9, 4e9]), *changes(values[1:], -1), *changes([4e9], -3)]))
    assert answer(run)[0] == pytest.approx(0, abs=1e-7)


def test_rows_that_come_more_than_once_count_as_often():
    run = Run(grouping((0,), SPREAD, schema=INPUT))
    run(Batch([Change(("a", 1e9 + 0.1), 3), Change(("a", 1e9), 7)]))
    run(Batch([Change(("a", 1e9), -2)]))
    values = [1e9 + 0.1] * 3 + [1e9] * 5
    assert answer(run) == pytest.approx([exactly(values)[f] for f in DEVIATIONS], rel=1e-7)


def test_equal_values_have_no_variance_whatever_was_there_before():
    run = Run(grouping((0,), SPREAD, schema=INPUT))
    run(Batch(changes([0.1, 0.1, 0.1, 4.7, -3.3])))
    run(Batch(changes([4.7, -3.3], -1)))
    assert answer(run) == [0.0] * len(SPREAD)


def test_variances_of_bigints_keep_their_digits():
    values = [1_700_000_000_123 + 3 * i for i in range(10)]
    schema = pa.schema([("c0", pa.string()), ("c1", pa.int64())])
    for type_ in (pa.float64(), pa.int64()):
        run = Run(grouping((0,), [(VARIANCE, type_, "")], schema=schema))
        for some in (values[:4], values[4:]):
            run(Batch(changes(some)))
        assert answer(run) == [74.25 if type_ == pa.float64() else 74]
    run(Batch(changes([4 * 10**15, -(4 * 10**15)])))
    run(Batch(changes([4 * 10**15, -(4 * 10**15)], -1)))
    assert answer(run) == [74]


def test_a_variance_of_bigints_too_large_for_whole_numbers_is_not_zero():
    schema = pa.schema([("c0", pa.string()), ("c1", pa.int64())])
    deviation = AggregateSpec(function="STDDEV_POP", arguments=(1,))
    run = Run(grouping((0,), [(deviation, pa.int64(), "")], schema=schema))
    run(Batch(changes([10**18, 2 * 10**18] * 8)))
    assert answer(run) == [5 * 10**17]


NOT_FINITE = {
    "NaN": ([math.nan], math.nan),
    "Infinity": ([math.inf], math.inf),
    "-Infinity twice": ([-math.inf, -math.inf], -math.inf),
    "both infinities": ([math.inf, -math.inf], math.nan),
    "all of them": ([math.inf, -math.inf, math.nan], math.nan),
}


@pytest.mark.parametrize("append", [True, False])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_a_sum_with_values_that_are_not_finite_is_that_of_floating_point_numbers(name, append):
    values, total = NOT_FINITE[name]
    for batches in ([[1.0, *values, 2.0]], [[1.0], values, [2.0]]):
        run = Run(grouping((0,), [*SUMS, *SPREAD], append, schema=INPUT))
        for batch in batches:
            run(Batch(changes(batch)))
        assert answer(run) == pytest.approx([total, total] + [math.nan] * len(SPREAD), nan_ok=True)


@pytest.mark.parametrize("name", NOT_FINITE)
def test_sums_and_variances_are_finite_again_when_what_was_not_is_retracted(name):
    values, total = NOT_FINITE[name]
    run = Run(grouping((0,), [*SUMS, *SPREAD], schema=INPUT))
    run(Batch(changes([1.0, *values, 3.0])))
    run(Batch(changes([*values, 1e200])))
    run(Batch(changes([*values, 1e200], -1)))
    assert answer(run)[0] == pytest.approx(total, nan_ok=True)
    run(Batch(changes(values, -1)))
    assert answer(run) == pytest.approx([4.0, 2.0, 1.0, 2.0, 2.0, 1.0, math.sqrt(2), math.sqrt(2)])
    run(Batch(changes([1.0, 3.0], -1)))
    assert (dict(run.applied), run.state_rows()) == ({}, 0)


def test_a_window_of_many_slices_keeps_the_digits_of_a_variance():
    values = near(1e9, 60)
    schema = pa.schema([("c0", pa.string()), ("c1", pa.float64()), ("c2", STAMP)])
    partial = WindowPartial(
        window=Hop(size=60, slide=2), aggregates=(VARIANCE,), input=schema, time=2, keys=(0,), append=True
    )
    output = pa.schema([(f"c{i}", t) for i, t in enumerate([pa.string(), pa.float64(), STAMP, STAMP, STAMP])])
    run = Run((partial, WindowAggregateOperator(partial=partial, output=output)))
    run(Batch([Change(("a", v, at(i))) for i, v in enumerate(values)], watermark=0))
    run(Batch([], watermark=END_OF_TIME))
    (whole,) = (row for row in run.applied if row[3] == at(60))
    assert whole[1] == pytest.approx(exactly(values)["VAR_POP"], rel=1e-7)


FRAMES = {
    "all rows": (Frame(rows=True, preceding=None), 60),
    "some rows": (Frame(rows=True, preceding=19), 20),
    "a time": (Frame(rows=False, preceding=19), 20),
}


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_keeps_the_digits_of_a_variance(name, distinct):
    frame, rows = FRAMES[name]
    values = near(1e9, 60)
    schema = pa.schema([("c0", pa.string()), ("c1", pa.float64()), ("c2", STAMP)])
    calls = tuple(OverCallSpec(function=f, frame=frame, arguments=(1,), distinct=distinct) for f in DEVIATIONS)
    output = pa.schema([(f"c{i}", t) for i, t in enumerate([*schema.types, *[pa.float64()] * len(calls)])])
    run = Run((OverOperator(input=schema, output=output, partition=(0,), time=2, calls=calls),))
    for start in range(0, 60, 17):
        run(Batch([Change(("a", v, at(start + i))) for i, v in enumerate(values[start : start + 17])], watermark=start))
    run(Batch([], watermark=END_OF_TIME))
    (last,) = (row for row in run.applied if row[2] == at(59))
    # DuckDB's variance of a frame follows its mean, which is rounded.
    assert numbers(last[3:]) == pytest.approx([exactly(values[-rows:])[f] for f in DEVIATIONS], rel=1e-6)


@pytest.mark.parametrize("name", FRAMES)
def test_infinity_stays_in_the_sums_of_the_frames_that_it_is_in(name):
    frame, rows = FRAMES[name]
    schema = pa.schema([("c0", pa.string()), ("c1", pa.float64()), ("c2", STAMP)])
    calls = tuple(OverCallSpec(function=f, frame=frame, arguments=(1,)) for f in ("SUM", "AVG", "VAR_POP"))
    output = pa.schema([(f"c{i}", t) for i, t in enumerate([*schema.types, *[pa.float64()] * len(calls)])])
    run = Run((OverOperator(input=schema, output=output, partition=(0,), time=2, calls=calls),))
    run(Batch([Change(("a", math.inf if i == 5 else 2.0, at(i))) for i in range(60)], watermark=END_OF_TIME))
    answers = {row[2]: numbers(row[3:]) for row in run.applied}
    for i in range(60):
        inside = 5 <= i < 5 + rows
        number = min(i + 1, rows)
        expected = [math.inf, math.inf, math.nan] if inside else [2.0 * number, 2.0, 0.0]
        assert answers[at(i)] == pytest.approx(expected, nan_ok=True)
