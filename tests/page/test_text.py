"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from service.observability.metrics.catalogue import DRIVER_PHASES, TASK_PHASES
from service.observability.page import phase_hints
from service.observability.page.text import ago, among, count, instant, many, rate, seconds, share, size

CASES: list[tuple[Callable[[float], str], float, str]] = [
    (count, 0, "0"),
    (count, 12_345, "12,345"),
    (count, 9_999_999, "9,999,999"),
    (count, 12_345_678, "12.3 M"),
    (count, 4.2e9, "4.2 G"),
    (count, -3, "-3"),
    (rate, 0, "0"),
    (rate, 0.42, "0.4"),
    (rate, 9.96, "10"),
    (rate, 3_400.4, "3,400"),
    (seconds, 0, "0 ms"),
    (seconds, 0.1234, "123 ms"),
    (seconds, 0.9996, "1.0 s"),
    (seconds, 2.34, "2.3 s"),
    (seconds, 59.96, "1 min"),
    (seconds, 61, "1 min 1 s"),
    (seconds, 3_600, "1 h"),
    (seconds, 90_000, "1 d 1 h"),
    (seconds, -5, "-5.0 s"),
    (ago, 0.4, "just now"),
    (ago, -3, "just now"),
    (ago, 61, "1 min 1 s ago"),
    (size, 0, "0 B"),
    (size, 1023, "1023 B"),
    (size, 1536, "1.5 KiB"),
    (size, 3 * 2**30, "3.0 GiB"),
    (size, 5 * 2**40, "5.0 TiB"),
    (share, 0, "0 %"),
    (share, 0.001, "under 1 %"),
    (share, 0.813, "81 %"),
    (share, 1, "100 %"),
    (instant, 0, "1970-01-01 00:00:00"),
    (instant, float("inf"), "the end of time"),
    (instant, 1e15, "the end of time"),
    (instant, -1e15, "the beginning of time"),
]


@pytest.mark.parametrize(("written", "number", "text"), CASES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_a_number_is_written(written: Callable[[float], str], number: float, text: str):
    assert written(number) == text


def test_one_is_not_many():
    assert [many(n, "row", "rows") for n in (0, 1, 1_200)] == ["0 rows", "1 row", "1,200 rows"]


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_listed(names: list[str], text: str):
    assert among(names) == text


def test_each_phase_of_the_metrics_has_words():
    assert tuple(phase_hints.DRIVER) == DRIVER_PHASES
    assert tuple(phase_hints.TASKS) == TASK_PHASES
