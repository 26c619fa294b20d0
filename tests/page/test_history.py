"""The last hour: what a batch adds to the slots that it ran in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.observability.page.history import SLOT, SLOTS, History, Level, Series

START = 1_000_000 * SLOT


def played(*batches: tuple[float, float, int]) -> History:
    """Batches as (since, ended, rows), in seconds after the start of a slot; each ran for all of that time."""
    history = History()
    for began, ended, rows in batches:
        level = Level(waiting=rows, state_rows=10 * rows)
        history.add(START + began, START + ended, ended - began, rows, 2 * rows, level)
    return history


def tail(values: tuple[float | None, ...], length: int) -> list[float | None]:
    assert len(values) == SLOTS
    return list(values[-length:])


def test_rows_of_a_batch_are_spread_over_the_time_since_the_one_before():
    series = played((5, 25, 400)).series(START + 3 * SLOT)
    assert tail(series.rows_in, 4) == [None, 10, 20, 10]
    assert tail(series.rows_out, 3) == [20, 40, 20]
    assert series.until == START + 3 * SLOT


def test_a_slot_shows_its_slowest_batch_and_the_last_levels():
    series = played((0, 1, 5), (1, 4, 7), (4, 5, 6)).series(START + SLOT)
    assert tail(series.batch_seconds, 1) == [3]
    assert tail(series.waiting, 1) == [6]
    assert tail(series.state_rows, 1) == [60]


def test_nothing_is_drawn_where_no_batch_ran_nor_of_the_slot_that_is_not_over():
    history = played((0, 1, 5), (31, 32, 5), (41, 42, 5))
    assert tail(history.series(START + 4.5 * SLOT).rows_in, 5) == [None, 0.5, None, None, 0.5]


def test_an_hour_is_kept_and_no_more():
    history = History()
    for second in range(0, 3 * SLOTS * int(SLOT), 5):
        history.add(START + second, START + second + 1, 1, 10, 0, Level(0, 0))
    assert len(history._slots) <= SLOTS + 1
    series = history.series(START + 3 * SLOTS * SLOT)
    assert len(series.rows_in) == SLOTS
    assert set(series.rows_in) == {2.0}


@pytest.mark.parametrize("length", [3 * 3600.0, 3600.0])
def test_a_batch_longer_than_the_hour_fills_it(length: float):
    history = played((-length, 0, 3600))
    assert None not in history.series(START).rows_in


@given(st.lists(st.tuples(st.floats(0, 60), st.integers(0, 10_000)), min_size=1, max_size=20))
def test_no_row_is_lost_between_the_slots(batches: list[tuple[float, int]]):
    history, at = History(), START
    for length, rows in batches:
        history.add(at, at + length, length, rows, 0, Level(0, 0))
        at += length
    seen = history.series(at + SLOT)
    total = sum(value or 0 for value in seen.rows_in) * SLOT
    assert total == pytest.approx(sum(rows for _, rows in batches), abs=0.01 * len(seen.rows_in))


def test_slots_are_in_the_order_of_time_and_columns_of_one_length():
    series = played((0, 1, 1), (95, 96, 1)).series(START + 200)
    assert isinstance(series, Series)
    columns = (series.rows_in, series.rows_out, series.batch_seconds, series.waiting, series.state_rows)
    assert all(len(one) == len(other) for one, other in pairwise(columns))
