"""The bounded sources of a job that are read to their ends, according to the reports of its batches."""

from __future__ import annotations

from collections.abc import Mapping

from service.deployment.bounds import reached
from service.formats import datagen
from service.plan.program import Program
from service.spark.supervision.reports import Report, end_offsets


class SourceEnds:
    """The bounded sources of a program; `limits` are the ends of their channels."""

    def __init__(self, program: Program, bounded: frozenset[int], limits: Mapping[str, int]) -> None:
        self._sources = program.sources
        self._bounded = bounded
        self._limits = limits
        self.ended: frozenset[int] = frozenset()

    def note(self, report: Report) -> bool:
        """Note the end of a batch. Return whether a source has ended with it."""
        found = set(self.ended)
        for source, offsets in zip(self._sources, end_offsets(report), strict=False):
            if source.id not in self._bounded or source.id in self.ended:
                continue
            if source.table.connector.kind == "datagen":  # its offsets are seconds
                offsets = {source.table.name: {"0": int(offsets or 0) * datagen.rate(source.table)}}
            if offsets and reached(source.id, self._limits, offsets):
                found.add(source.id)
        before, self.ended = self.ended, frozenset(found)
        return self.ended != before

    def all_ends_processed(self, report: Report) -> bool:
        """Return whether a finished batch includes the tick that reports the end of every source."""
        tick = end_offsets(report)[len(self._sources)]
        wanted = {source.id for source in self._sources}
        return bool(wanted) and tick is not None and set(tick.get("ended", ())) >= wanted
