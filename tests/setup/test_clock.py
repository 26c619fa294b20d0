"""A clock that goes ahead at once is not believed until that has lasted; one that is set back is, and is noticed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from service.host import clock_watch
from service.host.clock import ClockJumped, believed_time
from service.host.clock_watch import LONGEST_SET_BACK, ClockWatch, clock_watched

YEAR = 365 * 86_400.0


class _Machine:
    """Two clocks: one that is set, one that only runs."""

    def __init__(self, folder: Path) -> None:
        self.now, self.running, self.file = 1_000_000.0, 50.0, folder / "clock.json"

    def after(self, seconds: float, set_by: float = 0) -> int:
        self.running += seconds
        self.now += seconds + set_by
        return believed_time(self.file, lambda: self.now, lambda: self.running)


@pytest.fixture
def machine(tmp_path: Path) -> _Machine:
    return _Machine(tmp_path)


@pytest.mark.parametrize("set_by", [0, 3000, -3000, -YEAR])
def test_a_clock_that_runs_is_set_a_little_or_set_back_is_believed(machine: _Machine, set_by: float):
    machine.after(0)
    assert machine.after(10, set_by) == int((1_000_010 + set_by) * 1000)
    assert machine.after(86_400) == int((1_086_410 + set_by) * 1000)


def test_a_clock_that_jumps_ahead_and_back_makes_no_batch_in_the_wrong_year(machine: _Machine):
    machine.after(0)
    for set_by in (YEAR, 0, 0):
        with pytest.raises(ClockJumped, match="ahead by 365 days"):
            machine.after(10, set_by)
    assert machine.after(10, -YEAR) == 1_000_040_000


def test_a_clock_that_stays_ahead_is_believed_in_the_end(machine: _Machine):
    machine.after(0)
    with pytest.raises(ClockJumped):
        machine.after(10, YEAR)
    with pytest.raises(ClockJumped):
        machine.after(599)
    assert machine.after(2) == int((1_000_611 + YEAR) * 1000)
    assert machine.after(10) == int((1_000_621 + YEAR) * 1000)


def test_a_service_that_is_started_again_believes_what_it_finds(machine: _Machine):
    machine.after(0)
    with pytest.raises(ClockJumped):
        machine.after(10, YEAR)
    machine.file.unlink()
    assert machine.after(10) == int((1_000_020 + YEAR) * 1000)


@pytest.mark.parametrize(
    ("set_by", "noticed"),
    [(0, 0), (YEAR, 0), (-LONGEST_SET_BACK, 0), (-LONGEST_SET_BACK - 1, LONGEST_SET_BACK + 1), (-YEAR, YEAR)],
)
def test_a_clock_that_is_set_back_by_more_than_a_minute_is_noticed_once(
    machine: _Machine, set_by: float, noticed: float
):
    watch = ClockWatch(lambda: machine.now, lambda: machine.running)
    for step, expected in ((0, 0), (set_by, noticed), (0, 0)):
        machine.running += 10
        machine.now += 10 + step
        assert watch.set_back() == expected


def test_a_clock_that_was_ahead_and_is_set_right_is_noticed(machine: _Machine):
    watch = ClockWatch(lambda: machine.now, lambda: machine.running)
    machine.now += YEAR
    assert watch.set_back() == 0
    machine.now -= YEAR
    assert watch.set_back() == YEAR


def test_a_clock_is_watched_until_the_end_of_the_block(machine: _Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock_watch, "LOOK_EVERY", 0.01)
    found: list[float] = []
    noticed = threading.Event()

    def note(seconds: float) -> None:
        found.append(seconds)
        noticed.set()

    with clock_watched(note, ClockWatch(lambda: machine.now, lambda: machine.running)):
        machine.now -= YEAR
        assert noticed.wait(30)
    machine.now -= YEAR
    assert not any(thread.name == "clock" for thread in threading.enumerate())
    assert found == [YEAR]
