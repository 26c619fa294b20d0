"""A changed query takes over from the previous one, with the backfilled state of its new operators.

Both have read the same records: the previous query's last finished batch is N - 1, and the backfill has read up to its
end. Version N - 1 is rewritten, with the operators of the previous query from its own manifests, and the new ones from
those of the backfill. Then one file makes the checkpoint that of the changed query. Before that file is written the
previous query can continue from version N - 1, since it does not read blocks of operators that it does not have;
afterwards the new query does.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from service.checkpoint.batch_log import COMMITS, ends, last, unfinished
from service.checkpoint.blocks import FOLDER as BLOCKS
from service.checkpoint.blocks import BlockWriter, Manifest
from service.checkpoint.files import Files, StoredAt
from service.checkpoint.log_change import backfilled_source
from service.checkpoint.small_files import QUERY, SmallFiles
from service.checkpoint.version import LevelState, Version
from service.deployment.backfill import FOLDER, positions_in
from service.deployment.upgrading import change_of_log, remembered
from service.plan.backfill import BackfillPart
from service.plan.kept_tables import OPERATORS, kept_operators
from service.plan.meaning import Meaning
from service.plan.program import Program
from service.runtime.layout import Layout
from service.runtime.shard_operators import ShardPart, clipped_shard, operator_of, united_shard
from service.runtime.topology import Topology
from service.runtime.watermarks import united_clocks


class BackfillIncomplete(Exception):
    """A backfill that has not reached its end; the text says what is missing."""


def take_over(files: Files, backfill: Files, part: BackfillPart, program: Program) -> int:
    """Make the checkpoint in `files` that of `program`, whose part was backfilled in `backfill`, and return the batch
    with which it continues.

    Its sources have the ids of the checkpoint. Neither query may run meanwhile. If the process ends at any point, the
    takeover can be repeated.

    Raises BackfillIncomplete, and then leaves the checkpoint unchanged.
    """
    done, memory = last(files, COMMITS), SmallFiles(files)
    known = memory.read(QUERY)
    positions = positions_in(Meaning.from_json(known["meaning"]))
    _check(files, backfill, part, positions, done)
    levels = dict(Version.before(files, done + 1).levels) if files.names("tailrace/versions") else {}
    if part.program.levels:
        backfilled = Version.before(backfill, last(backfill, COMMITS) + 1).levels
        shards = len(next(iter((levels or backfilled).values())).manifests)
        topology = Topology(part.program)
        for number, level in backfilled.items():
            levels[number] = _united(files, backfill, topology, number, levels.get(number), level, shards, done)
        Version(levels).write(files, done)
    memory.write(OPERATORS, [each.to_json() for each in kept_operators(program)])
    read = enumerate(part.program.sources)
    new = {source.id: backfilled_source(backfill, at) for at, source in read if source.id not in positions}
    change = change_of_log(files, known, program.meaning, new)
    memory.write(QUERY, remembered(program.meaning, change))  # this write is the takeover
    change.put(files)
    return done + 1


def _check(files: Files, backfill: Files, part: BackfillPart, positions: Mapping[int, int], done: int) -> None:
    for name, log in (("the query", files), ("the backfill", backfill)):
        planned = unfinished(log)
        if planned is not None:
            raise BackfillIncomplete(f"{name} has planned batch {planned.number} and not done it")
    wanted = ends(files, done)
    read = ends(backfill, last(backfill, COMMITS))
    for at, source in enumerate(part.program.sources):
        if source.id not in positions:
            continue
        there = (read[at] if at < len(read) else None) or {}
        for topic, partitions in (wanted[positions[source.id]] or {}).items():
            for partition, end in partitions.items():
                is_ = there.get(topic, {}).get(partition)
                if is_ != end:
                    raise BackfillIncomplete(
                        f"the backfill has read {topic}/{partition} up to {is_}, and the query up to {end}"
                    )


def _united(
    files: Files,
    backfill: Files,
    topology: Topology,
    number: int,
    kept: LevelState | None,
    backfilled: LevelState,
    shards: int,
    batch: int,
) -> LevelState:
    """A level with its number of shards: the operators of the first query and those of the backfill, put together."""
    places = []
    for shard in range(shards):
        writer = BlockWriter(files, batch, number, shard)
        made = _clipped(backfill, topology, number, backfilled, Layout(shards).slots_of(shard))
        manifests = [Manifest(made.text, _adopted(files, made.blocks, batch))]
        if kept is not None:
            manifests.insert(0, _manifest(files, kept.manifests[shard]))
        united = united_shard([each.text for each in manifests])
        blocks = {
            block: place
            for part, manifest in enumerate(manifests)
            for block, place in manifest.blocks.items()
            if united.owners.get(operator_of(block)) == part
        }
        places.append(writer.add(pa.py_buffer(Manifest(united.manifest, blocks).to_bytes())))
        writer.close()
    return LevelState(united_clocks(None if kept is None else kept.clocks, backfilled.clocks), tuple(places))


def _clipped(backfill: Files, topology: Topology, level: int, backfilled: LevelState, slots: range) -> Manifest:
    """The blocks of a backfill that belong to `slots`."""
    layout = Layout(len(backfilled.manifests))
    had = {shard: _manifest(backfill, backfilled.manifests[shard]) for shard in layout.sharing(slots)}
    manifests = list(had.values())
    if len(had) == 1 and layout.slots_of(next(iter(had))) == slots:
        return manifests[0]
    parts = [ShardPart(layout.slots_of(shard), manifest.text) for shard, manifest in had.items()]
    found = clipped_shard(topology, level, parts, slots)
    return Manifest(found.manifest, {new: manifests[part].blocks[old] for new, (part, old) in found.blocks.items()})


def _manifest(files: Files, place: StoredAt) -> Manifest:
    return Manifest.from_bytes(files.block(place).to_pybytes())


def _adopted(files: Files, blocks: Mapping[str, StoredAt], batch: int) -> dict[str, StoredAt]:
    """The locations of the backfill's blocks among those of the job, as if `batch` had written them."""
    names = {place.file: f"{BLOCKS}/{batch:09d}-{place.file.rpartition('/')[2]}" for place in blocks.values()}
    for name, to in names.items():
        files.link(f"{FOLDER}/{name}", to)
    return {block: place._replace(file=names[place.file]) for block, place in blocks.items()}
