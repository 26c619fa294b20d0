"""Waiting for what has to become true, without saying how long that takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def until(
    what: str, ask: Callable[[], Answer], seconds: float = 180, explain: Callable[[], str] = str, every: float = 1.0
) -> Answer:
    """Ask until the answer is true and return it; after `seconds`, fail with `what` was waited for and `explain()`.

    Most questions start kubectl: asked every second, it leaves the processors to what is waited for.
    """
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}\n{explain()}".rstrip())
        time.sleep(every)
    return answer
