"""How many records a batch takes: fitted to how long the last ones took."""

from __future__ import annotations

import pytest

from service.spark.supervision.batch_sizing import FIRST_ROWS, LEAST_ROWS, PATIENCE, BatchSizing, MemoryBound

MOST = 4_000_000


def after(*batches: tuple[int, float], most: int = MOST, seconds: float = 2.0) -> int:
    pace = BatchSizing(most, seconds)
    for records, took in batches:
        pace.batch(records, took)
    return pace.rows


WARM = (FIRST_ROWS, 9.0)
"""A first batch: slow, whatever the rows are."""


@pytest.mark.parametrize(
    ("batches", "rows"),
    [
        pytest.param((), FIRST_ROWS, id="the first batch is small"),
        pytest.param((WARM,), 800_000, id="how long the first batch took tells nothing"),
        pytest.param((WARM, (800_000, 1.2)), 1_600_000, id="half the time for the rows, twice the records"),
        pytest.param((WARM, (800_000, 0.1)), 3_200_000, id="no more than four times as many at once"),
        pytest.param((WARM, (800_000, 0.1), (3_200_000, 0.4)), MOST, id="no more than the most"),
        pytest.param((WARM, (800_000, 0.4)), 3_200_000, id="most of a short batch is its price"),
        pytest.param((WARM, (800_000, 2.4)), 640_000, id="too long, fewer records"),
        pytest.param((WARM, (800_000, 60.0)), 400_000, id="no less than half at once"),
        pytest.param((WARM, *[(400_000, 60.0)] * 9), FIRST_ROWS, id="no less than the first"),
        pytest.param((WARM, (5, 0.3)), 800_000, id="a batch that was all there was tells nothing"),
        pytest.param((WARM, (0, 0.0)), 800_000, id="nor does an empty one"),
        pytest.param((WARM, (FIRST_ROWS, 0.5)), 800_000, id="nor one that was planned with the number before"),
    ],
)
def test_the_number_of_records_follows_from_how_long_batches_took(
    batches: tuple[tuple[int, float], ...], rows: int
) -> None:
    assert after(*batches) == rows


def test_a_small_cap_is_the_number_from_the_first_batch_on() -> None:
    assert after(most=500) == 500
    assert after((500, 0.2), (500, 9.0), most=500) == 500


@pytest.mark.parametrize("a_record", [2e-7, 2e-6, 9e-6])
def test_batches_come_to_last_as_long_as_asked_for(a_record: float) -> None:
    overhead, pace = 0.3, BatchSizing(100_000_000, 2.0)
    for _ in range(12):
        pace.batch(pace.rows, overhead + pace.rows * a_record)
    assert overhead + pace.rows * a_record == pytest.approx(2.0, rel=0.1)


MIB = 1 << 20


@pytest.mark.parametrize(
    ("record", "rows"),
    [
        pytest.param(0.0, FIRST_ROWS, id="nothing is known of their size"),
        pytest.param(100.0, FIRST_ROWS, id="small ones: time decides"),
        pytest.param(1.0 * MIB, 256, id="a megabyte each"),
        pytest.param(1024.0 * MIB, 1, id="larger than a batch may be: one is taken all the same"),
    ],
)
def test_a_batch_takes_as_many_records_as_memory_has_room_for(record: float, rows: int) -> None:
    pace = BatchSizing(MOST, 2.0, MemoryBound(256 * MIB, record))
    assert pace.rows == rows
    pace.batch(rows, 0.1)
    assert pace.rows <= max(1, 256 * MIB / record) if record else pace.rows > rows


def test_records_that_become_larger_make_batches_smaller_at_once_and_larger_again_little_by_little() -> None:
    pace, seen = BatchSizing(MOST, 2.0, MemoryBound(256 * MIB, 1_000.0)), []
    for number, record in enumerate([1_000.0, 1.0 * MIB, 1_000.0, 1_000.0]):
        pace.measured(record)
        pace.batch(pace.rows, 2.0, number)
        seen.append(pace.rows)
    assert seen == [268_435, 256, 511, 1021]


@pytest.mark.parametrize(
    ("share", "rows"),
    [
        pytest.param(40.0, 3_355_443, id="narrow rows"),
        pytest.param(300.0, 447_392, id="wide ones"),
        pytest.param(0.0, MOST, id="rows that are added up before they are sent"),
        pytest.param(30_000.0, LEAST_ROWS, id="rows that fan out: one that does not fit is replanned"),
    ],
)
def test_a_batch_sends_no_more_to_a_level_than_its_tasks_have_room_for(share: float, rows: int) -> None:
    pace = BatchSizing(MOST, 3600.0, MemoryBound(1024 * MIB, 100.0, sent=128 * MIB))
    for number in range(5):
        pace.measured(100.0, share)
        pace.batch(pace.rows, 1.0, number)
    assert pace.rows == min(rows, 1024 * MIB // 100)


def test_after_a_batch_that_did_not_fit_others_are_no_larger_until_some_of_that_size_are_done() -> None:
    bound = MemoryBound(256 * MIB, 100.0, failed_batch=7, rows=5_000)
    pace, seen = BatchSizing(MOST, 2.0, bound, next_batch=7), []
    for number in range(7, 7 + 2 * PATIENCE + 1):
        seen.append(pace.rows)
        pace.batch(pace.rows, 0.1, number)
    assert seen == [5_000] * PATIENCE + [10_000] * PATIENCE + [20_000]
    assert BatchSizing(MOST, 2.0, bound, next_batch=7 + PATIENCE).rows == 10_000, "in another process, too"
