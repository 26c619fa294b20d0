"""The folder of one run of a query, with files from which ticks and sources learn what changes while it runs.

The driver writes them; every tick and every read looks into them. Each is replaced atomically.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

_CLOCK = "clock.json"
_ENDED = "ended.json"
_HELD = "held"
_WAITING = "waiting.json"


class RunFolder:
    """The files of one run; `path` need not exist for readers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def made(cls, scratch: Path) -> RunFolder:
        """Make the folder of a new run below that of the driver, with room for the sockets of its writers."""
        folder = cls(scratch / f"r{time.time_ns():x}")
        (folder.path / "writer").mkdir(parents=True)
        return folder

    @staticmethod
    def clock(scratch: Path) -> Path:
        """Return the file that remembers the clocks for all runs of a driver (`believed_time`)."""
        return scratch / _CLOCK

    def ends_file(self, source: int) -> Path:
        """Return the file with the offsets up to which batches read a source for now."""
        return self.path / f"ends-{source}.json"

    def write_ends(self, ends: Mapping[int, str]) -> None:
        """Write the offsets up to which sources are read for now: Spark's JSON of offsets, by source."""
        for source, offsets in ends.items():
            path = self.ends_file(source)
            if not path.exists() or path.read_text() != offsets:
                _replace(path, offsets)

    def write_ended(self, sources: Iterable[int]) -> None:
        """Write which bounded sources are read to their ends. The ticks read it, and send it to every shard."""
        _replace(self.path / _ENDED, json.dumps(sorted(sources)))

    def ended(self) -> list[int]:
        """Return the sources of `write_ended`."""
        return _listed(self.path / _ENDED)

    def write_waiting(self, sources: Iterable[int]) -> None:
        """Write which sources are not read before the tables that they wait for."""
        _replace(self.path / _WAITING, json.dumps(sorted(sources)))

    def waiting(self) -> list[int]:
        """Return the sources of `write_waiting`."""
        return _listed(self.path / _WAITING)

    def hold(self) -> None:
        """Stop all ticks."""
        (self.path / _HELD).touch()

    def held(self) -> bool:
        """Return whether ticks are stopped."""
        return (self.path / _HELD).exists()

    def remove(self) -> None:
        """Remove the folder at the end of its run."""
        shutil.rmtree(self.path, ignore_errors=True)


def _replace(file: Path, text: str) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(text)
    temporary.rename(file)


def _listed(file: Path) -> list[int]:
    return json.loads(file.read_text()) if file.exists() else []
