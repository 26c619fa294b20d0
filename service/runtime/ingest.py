"""Level 0: a task decodes the records of its Kafka partitions in one batch, and runs the operators before the first
exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrow_stream import SMALL
from operators.sql import Sql
from operators.time import MIN_TIME
from service.formats.contract import Decoder
from service.plan.program import Source
from service.runtime.asserted_watermarks import AssertedWatermarks
from service.runtime.decoding import BlockDecoder
from service.runtime.entry_operators import EntryOperators, Produced
from service.runtime.envelope import EGRESS, PAYLOAD, Envelope, Kind, pack, packed
from service.runtime.layout import Layout
from service.runtime.partition_clocks import PartitionClock, newest, to_bytes
from service.runtime.record_runs import TOGETHER, Run, gathered, runs
from service.runtime.shared_payloads import ChannelRows, joined
from service.runtime.source_digest import digest_range
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import SourceChannel, channel_name


class BadInput(Exception):
    """A record that cannot be decoded, of a table with 'tailrace.bad-input' = 'fail'."""


RUN_ROWS = 200_000
"""The number of a partition's records that are computed at a time, unless the caller sets another."""

FEW = SMALL
"""Bytes of rows of a partition for a shard, up to which they share a payload with those of other partitions: of more,
an envelope costs little beside the rows."""


class _Taken(NamedTuple):
    """The rows of a run of records, and the watermark (milliseconds) that they assert."""

    changes: pa.Table
    dead: pa.Table
    watermark: int


class _Shared:
    """The rows of partitions that have few, by exchange and shard; they fit into one payload."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], list[ChannelRows]] = {}
        self._bytes = 0

    def is_full(self) -> bool:
        """Whether the next rows may not fit any more."""
        return self._bytes > PAYLOAD - FEW

    def take(self, address: int, shard: int, channel: str, tables: Sequence[pa.Table]) -> bool:
        """Add all that the channel has for a shard, one table or more, if that is little."""
        # Buffers of all partitions, which these share with others, are counted faster than their own bytes.
        size = sum(table.get_total_buffer_size() for table in tables)
        if size > FEW:
            size = sum(table.nbytes for table in tables)
        if size > FEW:
            return False
        rows = tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()
        self._parts.setdefault((address, shard), []).append(ChannelRows(channel, rows))
        self._bytes += size
        return True

    def drained(self) -> Iterator[tuple[tuple[int, int], list[ChannelRows]]]:
        """Yield exchange, shard and rows, and let go of them."""
        parts, self._parts, self._bytes = self._parts, {}, 0
        yield from parts.items()


class _Channel:
    """A Kafka partition in this batch, and what has come from it so far. `parts` are by exchange and shard."""

    def __init__(self, place: SourceChannel, topology: Topology, shards: int) -> None:
        self.place = place
        self.name = place.name
        self.watermark = MIN_TIME
        self.parts: list[list[list[pa.Table]]] = [[[] for _ in range(shards)] for _ in topology.exchanges]
        self._offsets: tuple[int, int] | None = None
        self._count = 0
        self._sequence = 0

    def read(self, records: pa.Table) -> None:
        """Note that these records, one or more, were read."""
        first, last = records["offset"][0].as_py(), records["offset"][-1].as_py()
        self._offsets = (first if self._offsets is None else self._offsets[0], last)
        self._count += records.num_rows

    def clock(self) -> PartitionClock:
        """The partition's watermark, and the digest of its records."""
        assert self._offsets is not None
        source_range = digest_range(self.name, *self._offsets, self._count)
        return PartitionClock(self.place.topic, self.place.partition, self.watermark, source_range)

    def envelope(
        self,
        shard: int,
        level: int,
        kind: Kind,
        address: int,
        now: int,
        *,
        watermark: int = MIN_TIME,
        payload: bytes = b"",
    ) -> Envelope:
        """The next envelope of this channel."""
        self._sequence += 1
        return Envelope(shard, level, kind, address, self.name, self._sequence, now, watermark, False, payload)


class Ingest:
    """Decodes records, runs the stateless operators of level 0 and addresses the results to shards.

    `limits` holds the offset, by channel, at which a bounded source ends; records from there on are not read. `rows`
    records of a partition are computed at a time.
    """

    def __init__(
        self,
        topology: Topology,
        source: Source,
        decoder: Decoder,
        layout: Layout,
        sql: Sql,
        limits: Mapping[str, int] | None = None,
        rows: int = RUN_ROWS,
    ) -> None:
        self._topology = topology
        self._source = source
        self._decoder = BlockDecoder(decoder, sql)
        self._watermarks = AssertedWatermarks(source, sql)
        self._operators = EntryOperators(topology, source, layout, sql)
        self._layout = layout
        self._limits = limits or {}
        self._rows = rows

    def run(self, blocks: Iterable[pa.Table], now: int) -> Iterator[Envelope]:
        """Yield the envelopes of one task.

        `blocks` are records (contract.RECORD) of one partition after another, each in offset order. The rows that a
        partition sends do not depend on which other partitions the task reads; the order of those of different keys
        may, where rows are added up before they are sent.
        """
        metrics = TaskMetrics()
        channel: _Channel | None = None
        clocks: list[PartitionClock] = []
        shared = _Shared()
        for group in gathered(runs(blocks, self._rows)):
            found = self._taken_in(group, metrics)
            with metrics.timed("ingest_operators"):
                changes = [taken.changes for taken in found]
                # The size of a run alone determines how it is computed, so a replay computes it the same way.
                small = all(run.records.num_rows < TOGETHER for run in group)
                computed = self._operators.run(changes, now, metrics, at_once=small)
            for run, taken, produced in zip(group, found, computed, strict=True):
                place = SourceChannel(self._source.id, run.topic, run.partition)
                if channel is None or channel.place != place:
                    if channel is not None:
                        clocks.append(channel.clock())
                        yield from self._close(channel, shared, now, metrics)
                    channel = _Channel(place, self._topology, self._layout.shards)
                channel.read(run.records)
                if taken.dead.num_rows:
                    yield from self._leave_dead_records(taken.dead, channel, now)
                channel.watermark = max(channel.watermark, taken.watermark)
                yield from self._hand_on(produced, channel, now)
            # The memory of these records is freed before the task waits for more.
            del group, found, changes, computed, run, taken, produced
        if channel is None:
            return
        clocks.append(channel.clock())
        yield from self._close(channel, shared, now, metrics)
        yield from self._send_shared(shared, channel, now, metrics)
        yield from self._send_clocks(clocks, channel, now)
        yield from self._leave_digests(clocks, channel, now)
        yield self._leave(Kind.METRICS, self._source.id, channel, now, metrics.to_json())

    def _close(self, channel: _Channel, shared: _Shared, now: int, metrics: TaskMetrics) -> Iterator[Envelope]:
        """Send the rows of a whole partition; few of them are added to those that share a payload."""
        for address, (exchange, by_shard) in enumerate(zip(self._topology.exchanges, channel.parts, strict=True)):
            for shard, tables in enumerate(by_shard):
                if shared.is_full():
                    yield from self._send_shared(shared, channel, now, metrics)
                if tables and shared.take(address, shard, channel.name, tables):
                    continue
                for payload in packed(_drained(tables)):
                    metrics.count("exchanged_bytes_total", len(payload), level=exchange.level)
                    yield channel.envelope(shard, exchange.level, Kind.ROWS, address, now, payload=payload)

    def _send_shared(self, shared: _Shared, channel: _Channel, now: int, metrics: TaskMetrics) -> Iterator[Envelope]:
        """The rows of several partitions, once to each shard, in the channel of the last one."""
        for (address, shard), parts in shared.drained():
            level = self._topology.exchanges[address].level
            alone = [part.channel for part in parts] == [channel.name]
            payload = pack(parts[0].rows if alone else joined(parts))
            metrics.count("exchanged_bytes_total", len(payload), level=level)
            kind = Kind.ROWS if alone else Kind.SHARED_ROWS
            yield channel.envelope(shard, level, kind, address, now, payload=payload)

    def _send_clocks(self, clocks: Sequence[PartitionClock], channel: _Channel, now: int) -> Iterator[Envelope]:
        """The watermarks of all partitions, once to each shard, in the channel of the last partition."""
        payload, watermark = to_bytes(clocks), newest(clocks)
        for level in self._topology.levels_receiving(self._source.id):
            for shard in range(self._layout.shards):
                place = shard, level, Kind.CLOCK, self._source.id, now
                yield channel.envelope(*place, watermark=watermark, payload=payload)

    def _leave_digests(self, clocks: Sequence[PartitionClock], channel: _Channel, now: int) -> Iterator[Envelope]:
        """The digests of what was read, for the sink: those of a partition always go to the same shard."""
        by_shard: dict[int, list[bytes]] = {}
        for clock in clocks:
            by_shard.setdefault(clock.partition % self._layout.shards, []).append(clock.source_range)
        for shard, source_ranges in by_shard.items():
            payload = b"".join(source_ranges)
            yield channel.envelope(shard, EGRESS, Kind.OFFSETS, self._source.id, now, payload=payload)

    def _taken_in(self, group: Sequence[Run], metrics: TaskMetrics) -> list[_Taken]:
        """The rows of each run, and the watermark that they assert."""
        wanted = [self._within_limit(run) for run in group]
        with metrics.timed("decode"):
            decoded = self._decoder.decode(wanted)
        for run, each in zip(wanted, decoded, strict=True):
            if run.records.num_rows:
                place = {"source": self._source.table.name, "topic": run.topic}
                metrics.count("input_records_total", run.records.num_rows, **place)
                names = {"key", "value"} & set(run.records.schema.names)
                size = sum(run.records[name].nbytes for name in names)
                metrics.count("input_bytes_total", size, **place)
                metrics.count("decode_errors_total", each.dead.num_rows, topic=run.topic)
        watermarks = self._watermarks.of([each.changes for each in decoded])
        return [_Taken(each.changes, each.dead, w) for each, w in zip(decoded, watermarks, strict=True)]

    def _leave_dead_records(self, dead: pa.Table, channel: _Channel, now: int) -> Iterator[Envelope]:
        """Treat dead records as the table's 'tailrace.bad-input' says: send them to the dead-letter topic, only count
        them, or end the job."""
        table = self._source.table
        match table.connector.bad_input:
            case "skip":
                return
            case "fail":
                place = f"offset {dead['offset'][0].as_py()} of {channel.place.topic}/{channel.place.partition}"
                raise BadInput(f"table {table.name}, {place}: {dead['detail'][0].as_py()}")
            case _:
                yield from self._leave_rows(Kind.DEAD_RECORDS, self._source.id, channel, now, dead)

    def _hand_on(self, produced: Produced, channel: _Channel, now: int) -> Iterator[Envelope]:
        """Keep the rows for shards until the partition has been read; send the others at once."""
        for address, shard, part in produced.parts:
            channel.parts[address][shard].append(part)
        for operator, rows in produced.dead:
            yield from self._leave_rows(Kind.DEAD_ROWS, operator, channel, now, rows)
        for output, rows in produced.outputs:
            yield from self._leave_rows(Kind.OUTPUT, output, channel, now, rows)

    def _within_limit(self, run: Run) -> Run:
        """A run with its records before the end of a bounded source: its first ones, since they are in offset order."""
        limit = self._limits.get(channel_name(self._source.id, run.topic, run.partition)) if self._limits else None
        if limit is None or run.records["offset"][-1].as_py() < limit:
            return run
        count = int(np.searchsorted(run.records["offset"].to_numpy(), limit))
        return run._replace(records=run.records.slice(0, count), block=None)

    def _leave_rows(self, kind: Kind, address: int, channel: _Channel, now: int, rows: pa.Table) -> Iterator[Envelope]:
        for payload in packed([rows]):
            yield self._leave(kind, address, channel, now, payload)

    def _leave(self, kind: Kind, address: int, channel: _Channel, now: int, payload: bytes) -> Envelope:
        """An envelope to the sink: all of one channel go through the same task, so that its rows keep their order."""
        shard = channel.place.partition % self._layout.shards
        return channel.envelope(shard, EGRESS, kind, address, now, payload=payload)


def _drained(tables: list[pa.Table]) -> Iterator[pa.Table]:
    """The tables in their order, each of which is let go as it is given away."""
    tables.reverse()
    while tables:
        yield tables.pop()
