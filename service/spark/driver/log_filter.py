"""What the JVM says on its error stream that is no news: of how it was started, and of what was cut off on purpose.

Each task that keeps state listens to its Python worker in a thread of its own. Where the task ends before its worker,
because one of the two was killed or the query stopped, that thread dies of it and says so with every frame, once a
task. What became of the task is told by the query.
"""

from __future__ import annotations

import re

_AT_THE_START = (
    "Streaming TransformWithState",
    "Starting Streaming TransformWithState",
    "WARNING: Using incubator modules",
    "Setting default log level to",
    "To adjust logging level use",
)

LISTENER = 'Exception in thread "stateConnectionListenerThread" '
"""The first words of what such a thread says. Of two that die at once both may say them before either goes on: then
they stand twice in one line, and an exception without them follows."""

_CUT_OFF = re.compile(
    rf"(?P<listeners>({LISTENER})*)"
    r"java\.(nio\.channels\.\w+Exception|(io\.IOException|net\.SocketException): (Broken pipe|Connection reset\b.*))"
)

_MORE_OF_IT = ("\t", "Caused by: ")


class LogFilter:
    """Tells the lines apart, in their order: the frames of an exception go with it."""

    def __init__(self) -> None:
        self._within = False
        self._interrupted = 0

    def hides(self, line: str) -> bool:
        """Whether nobody needs this line."""
        if self._within and line.startswith(_MORE_OF_IT):
            return True
        self._within = self._cut_off(line)
        return self._within or line.startswith(_AT_THE_START)

    def _cut_off(self, line: str) -> bool:
        found = _CUT_OFF.fullmatch(line)
        if found is None:
            return False
        listeners = len(found["listeners"]) // len(LISTENER)
        if listeners == 0 and self._interrupted == 0:
            return False
        self._interrupted += listeners - 1
        return True
