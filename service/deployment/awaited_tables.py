"""Tables that are read up to a fixed offset before others are read: those of temporal joins in processing time.

Law: that offset is the end of the table's topic when the checkpoint is made, and the checkpoint keeps it. A source that
waits for the table reads nothing until a batch has been planned that ends there. Spark's log of offsets says how
batches were cut. So a batch that is repeated is cut as before, and a restart waits only for the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from service.checkpoint.batch_log import OFFSETS, ends, last
from service.checkpoint.files import Files
from service.deployment.bounds import Ends, Store, reached
from service.deployment.deployment import Deployment
from service.plan.program import Program
from service.runtime.watermarks import SourceChannel, channel_name

AWAITED = "awaited"
"""The file of a checkpoint with the offset of each channel up to which others wait."""


def agree_on_awaited(
    store: Store, program: Program, ends_of: Callable[[int], Ends], *, planned: bool
) -> dict[str, int]:
    """Return, for each channel of the sources that others wait for, the offset to wait for.

    Until a batch has been `planned`, each start asks Kafka and stores the answer; after that the stored one is
    returned. It is empty if a version of Tailrace that did not wait has planned the first batch. `ends_of` asks for the
    offsets of one source, once. Raises KafkaFailure.
    """
    if planned:
        return dict(store.read(AWAITED) or {})
    tables = sorted({table for source in program.sources for table in source.after})
    found = {
        channel_name(table, topic, partition): end
        for table in tables
        for topic, by_partition in ends_of(table).items()
        for partition, end in by_partition.items()
    }
    if found or store.read(AWAITED):
        store.write(AWAITED, found)
    return found


def await_tables(deployment: Deployment, store: Store, files: Files, starts: Mapping[int, str]) -> AwaitedTables:
    """Return the sources that wait. The next batch begins where the last planned one ends, else at `starts`: Spark's
    JSON of offsets, by source. Raises KafkaFailure."""
    planned = last(files, OFFSETS)
    program = deployment.program
    awaited = AwaitedTables(program, agree_on_awaited(store, program, deployment.end_offsets, planned=planned >= 0))
    if not awaited.waiting:
        return awaited
    stops = ends(files, planned) if planned >= 0 else []
    for position, source in enumerate(program.sources):
        if source.id not in starts:
            continue
        offsets = stops[position] if position < len(stops) else None
        if planned < 0:
            offsets = json.loads(starts[source.id])
        if offsets:
            awaited.read(source.id, offsets)
    return awaited


class AwaitedTables:
    """The sources that wait, and the tables that they wait for, while reading proceeds. `ends` are those of
    `agree_on_awaited`."""

    def __init__(self, program: Program, ends: Mapping[str, int]) -> None:
        self._ends = ends
        self._names = {source.id: source.table.name for source in program.sources}
        known = {SourceChannel.of(name).source for name in ends}
        self._after = {source.id: set(source.after) & known for source in program.sources}

    def read(self, source: int, offsets: Mapping[str, Mapping[str, int]]) -> None:
        """Note that batches are planned up to `offsets` of a source."""
        if reached(source, self._ends, offsets):
            for others in self._after.values():
                others.discard(source)

    @property
    def waiting(self) -> Mapping[int, tuple[int, ...]]:
        """The waiting sources, each with the sources that it waits for."""
        return {source: tuple(sorted(others)) for source, others in self._after.items() if others}

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the waiting tables, each with the tables that it waits for."""
        return {self._names[s]: tuple(self._names[each] for each in others) for s, others in self.waiting.items()}
