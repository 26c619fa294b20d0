"""The change of Spark's log of batches when a query takes over that reads other sources.

The log has a line for each source, by position; the last line is that of the ticks. Spark reads the lines of the last
two batches at a start, so these are rewritten; earlier batches can no longer be restored. The rewritten lines are
stored in the small file that makes the checkpoint that of the new query, and every later start writes them until it
succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.checkpoint.batch_log import COMMITS, NO_OFFSET, OFFSETS, SOURCES, checksum, last, logged, put_offsets
from service.checkpoint.files import Files


@dataclass(frozen=True, slots=True)
class BackfilledSource:
    """A source that another query has read: its line in the log, and the file that says where it began."""

    line: str
    begin: str


@dataclass(frozen=True, slots=True)
class LogChange:
    """The log from `batch` on, the last that the query before has done. `lines` are those of the batches that are
    rewritten, by number, and `begins` the files that say where sources began, by position; both None where the log
    stays as it is."""

    batch: int
    lines: Mapping[str, Sequence[str]] | None = None
    begins: Sequence[str | None] | None = None

    @staticmethod
    def between(
        files: Files,
        before: Sequence[int],
        after: Sequence[int],
        backfilled: Mapping[int, BackfilledSource] | None = None,
    ) -> LogChange:
        """Return the change for sources of the ids `after` if those of `before` were read. A source that is new begins
        where its table says, or at the end of what was `backfilled`. No batch may be planned that is not done."""
        done = last(files, COMMITS)
        if tuple(before) == tuple(after):
            return LogChange(done)
        new = backfilled or {}
        lines: dict[str, list[str]] = {}
        for number in range(max(done - 1, 0), done + 1):
            known = logged(files, number).lines
            there = dict(zip(before, known, strict=False))
            if number == done:
                there |= {source: each.line for source, each in new.items()}
            lines[str(number)] = [*(there.get(source, NO_OFFSET) for source in after), *known[len(before) :]]
        begins = {source: _begin(files, position) for position, source in enumerate(before)} if lines else {}
        begins |= {source: each.begin for source, each in new.items()}
        return LogChange(done, lines, [begins.get(source) for source in after])

    def put(self, files: Files) -> None:
        """Write the log, unless a batch has been planned since."""
        if self.lines is None or self.begins is None:
            return
        if last(files, OFFSETS) != self.batch or last(files, COMMITS) != self.batch:
            return
        for number, lines in self.lines.items():
            metadata, known = logged(files, int(number))
            if known != list(lines):
                put_offsets(files, int(number), metadata, lines)
        position = 0
        while position < len(self.begins) or files.names(f"{SOURCES}/{position}"):
            wanted = self.begins[position] if position < len(self.begins) else None
            if wanted != _begin(files, position):
                _put_begin(files, position, wanted)
            position += 1

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"batch": self.batch, "lines": self.lines, "begins": self.begins}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> LogChange:
        """Return what `to_json` wrote."""
        return LogChange(**stored)


def backfilled_source(files: Files, position: int) -> BackfilledSource:
    """Return the log entries of the source at `position` in a checkpoint whose last batch is done."""
    return BackfilledSource(logged(files, last(files, COMMITS)).lines[position], _begin(files, position) or "")


def _begin(files: Files, position: int) -> str | None:
    """The file that says where a source began, byte for byte."""
    written = files.get(f"{SOURCES}/{position}/0")
    return None if written is None else written.decode("latin-1")


def _put_begin(files: Files, position: int, wanted: str | None) -> None:
    log = f"{SOURCES}/{position}"
    files.remove([checksum(log, 0)])
    if wanted is None:
        files.remove([f"{log}/0"])
    else:
        files.put(f"{log}/0", [wanted.encode("latin-1")])
