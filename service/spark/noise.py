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

_CUT_OFF = re.compile(
    r'Exception in thread "stateConnectionListenerThread" '
    r"java\.(nio\.channels\.\w+Exception|(io\.IOException|net\.SocketException): (Broken pipe|Connection reset\b.*))"
)

_MORE_OF_IT = ("\t", "Caused by: ")


class Noise:
    """Tells the lines apart, in their order: the frames of an exception go with it."""

    def __init__(self) -> None:
        self._within = False

    def hides(self, line: str) -> bool:
        """Whether nobody needs this line."""
        if self._within and line.startswith(_MORE_OF_IT):
            return True
        self._within = _CUT_OFF.fullmatch(line) is not None
        return self._within or line.startswith(_AT_THE_START)
