"""A clock that is set back, noticed while a service runs.

Clients of Kafka wait by the wall clock: librdkafka until a time of it (confluentinc/librdkafka#2145), the Java client
for a time-out that it counts by it. A wait that has begun lasts longer by as much as the clock is set back, without an
error. Such a call cannot be ended, only its process can.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from service.host.clock import elapsed

LONGEST_SET_BACK = 60.0
"""Seconds by which a clock may be set back at once: waits last longer by as much, and a new start takes about ten."""

LOOK_EVERY = 0.2
"""Seconds between two looks at the clock. One that goes ahead and back between them is not noticed."""

READ_WITHIN = 1.0
"""Seconds that reading two clocks may take: after a longer pause of the process they do not belong together."""


class ClockWatch:
    """Compares the wall clock with one that only runs."""

    def __init__(self, now: Callable[[], float] = time.time, running: Callable[[], float] = elapsed) -> None:
        self._now, self._running = now, running
        self._ahead = self._difference()

    def set_back(self) -> float:
        """Return by how many seconds the clock was set back since the last call, 0 if by no more than
        LONGEST_SET_BACK. Smaller steps do not add up."""
        ahead = self._difference()
        back, self._ahead = self._ahead - ahead, ahead
        return back if back > LONGEST_SET_BACK else 0.0

    def _difference(self) -> float:
        while True:
            before, now = self._running(), self._now()
            if self._running() - before < READ_WITHIN:
                return now - before


SAY_WITHIN = 5.0
"""Seconds that a message may take before the process ends: nobody may be reading it."""


def end_at_once(code: int, say: Callable[[], None] = lambda: None) -> NoReturn:
    """End this process, whatever its threads wait for, as kill -9 would; `say` may tell why before."""
    late = threading.Timer(SAY_WITHIN, os._exit, (code,))
    late.daemon = True
    late.start()
    try:
        say()
    finally:
        os._exit(code)


@contextmanager
def clock_watched(on_set_back: Callable[[float], None], watch: ClockWatch | None = None) -> Iterator[None]:
    """Call `on_set_back` with the seconds, in a thread of its own, when the clock is set back during the block."""
    watch, over = watch or ClockWatch(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY):
            if back := watch.set_back():
                on_set_back(back)

    looking = threading.Thread(target=look, name="clock", daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()
