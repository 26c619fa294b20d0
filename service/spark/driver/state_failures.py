"""Tasks that can no longer reach their state, and would wait for ever.

Spark answers what a Python worker asks of its state in a thread of its own. An exception there is answered, too. An
Error (Hadoop raises one when a disk is full) ends the thread, and the worker waits for an answer that never comes. An
executor of its own ends itself then; of the driver's JVM the last words of the thread are all that tells of it.
"""

from __future__ import annotations

import re
from collections import deque

from service.spark.driver.log_filter import LISTENER

_LAST_WORDS = re.compile(rf"({LISTENER})+(?P<error>[\w.$]+Error\b.*)")


class StateFailure(Exception):
    """The state of a running batch cannot be read or written any more; the text is Java's reason."""


class StateFailures:
    """What the JVM has said of them, until it is taken. One thread hears, another takes."""

    def __init__(self) -> None:
        self._heard: deque[str] = deque()

    def hear(self, line: str) -> None:
        """A line of the JVM that is not noise."""
        if found := _LAST_WORDS.fullmatch(line):
            self._heard.append(found["error"])

    def take(self) -> StateFailure | None:
        """The oldest one that was not taken yet; those heard with it are of the same batch, and forgotten."""
        if not self._heard:
            return None
        failure = StateFailure(self._heard.popleft())
        self._heard.clear()
        return failure
