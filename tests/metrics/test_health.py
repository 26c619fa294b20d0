"""Whether the service is alive: a batch is judged by where it stands, a quiet job and a restore are not."""

from __future__ import annotations

import pytest

from service.observability.health import Health


class _Run:
    """A query `q` and its clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.health = Health(600, clock=lambda: self.now)
        self.health.expect("q")
        self.health.started("q")

    def after(self, seconds: float, point: object) -> bool:
        """Whether it is alive when it is found at `point` some seconds later."""
        self.now += seconds
        self.health.point("q", point)
        return self.health.live()[0]


def test_a_quiet_job_is_alive_however_long():
    run = _Run()
    run.health.completed("q")
    assert all(run.after(3600, None) for _ in range(24))


def test_the_first_batch_after_a_start_may_take_its_time():
    run = _Run()
    assert run.after(1, "addBatch")
    assert run.after(7200, "addBatch")
    run.health.completed("q")
    run.health.started("q")
    assert run.after(1, "addBatch")
    assert run.after(7200, "addBatch")


@pytest.mark.parametrize(("seconds", "alive"), [(599, True), (601, False)])
def test_a_batch_that_stays_where_it_is_is_stuck(seconds: float, alive: bool):
    run = _Run()
    run.health.completed("q")
    assert run.after(0, "addBatch")
    assert run.after(seconds, "addBatch") is alive


def test_a_long_batch_that_moves_is_alive():
    run = _Run()
    run.health.completed("q")
    assert all(run.after(500, ("addBatch", task)) for task in range(20))
    assert run.after(500, None)
    assert run.after(500, ("addBatch", 19))


def test_a_query_that_gave_up_does_not_take_the_others_along():
    run = _Run()
    run.health.expect("other")
    run.health.started("other")
    run.health.completed("other")
    run.health.give_up("q", "wrong state")
    assert run.health.live() == (True, {})
    assert run.health.ready() == (False, {"q": "wrong state"})
