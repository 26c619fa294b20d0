"""The rates of a run are taken between commits that were seen."""

from __future__ import annotations

import pytest

from bench.measure import Run, Sample


def run_with(*samples: tuple[float, int], rows: int = 100, seconds: float = 10.0) -> Run:
    return Run("tumble-1k", "flink", rows, seconds, samples=tuple(Sample(*sample) for sample in samples))


def test_the_whole_run_counts_its_start():
    assert run_with(rows=100, seconds=10.0).whole == 10.0


def test_the_middle_is_between_the_first_commits_past_20_and_past_90_percent():
    run = run_with((4.0, 10), (5.0, 25), (6.0, 60), (8.0, 95), (9.0, 100))
    assert run.middle == pytest.approx((95 - 25) / (8.0 - 5.0))


@pytest.mark.parametrize("samples", [(), ((5.0, 100),), ((1.0, 5), (2.0, 100))])
def test_a_run_with_one_step_past_20_percent_has_no_middle(samples):
    assert run_with(*samples).middle == 0.0
