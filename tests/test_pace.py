"""How many records a batch takes: fitted to how long the last ones took."""

from __future__ import annotations

import pytest

from service.spark.supervision.batch_sizing import FIRST_ROWS, BatchSizing

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
