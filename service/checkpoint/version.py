"""The state after one batch: where the manifest of each shard is, and the clock of each level.

The driver writes a version when all tasks of its batch are done, before Spark notes the batch as done. A task of batch
N starts from version N - 1, which is final by then. What an unfinished batch has written does not count, however often
it was tried: no version names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from service.checkpoint.files import Files, StateMissing, StoredAt

FOLDER = "tailrace/versions"


class BatchAlreadyDone(Exception):
    """Another driver has done a batch, and its version counts."""


class BatchTakenOver(Exception):
    """Another driver repeats a batch, and has removed what this one wrote."""


class ShardState(NamedTuple):
    """The report of a shard after a batch: the place of its manifest, and from the first shard of a level its clocks,
    which are the same in every shard."""

    level: int
    shard: int
    clocks: Mapping[str, Any] | None
    manifest: StoredAt

    def to_json(self) -> bytes:
        """Return the payload of an envelope."""
        return json.dumps(self).encode()

    @staticmethod
    def from_json(payload: bytes) -> ShardState:
        """Return what `to_json` wrote."""
        level, shard, clocks, place = json.loads(payload)
        return ShardState(level, shard, clocks, StoredAt(*place))


class LevelState(NamedTuple):
    """One level of a version: its clocks, and where the manifest of each shard is, in their order."""

    clocks: Mapping[str, Any] | None
    manifests: tuple[StoredAt, ...]


@dataclass(frozen=True)
class Version:
    """The state after a batch, level by level."""

    levels: Mapping[int, LevelState]

    @staticmethod
    def of(reports: Iterable[ShardState], levels: int, shards: int) -> Version:
        """Return the version that the tasks of a batch have reported. Raises ValueError where a shard is missing."""
        clocks: dict[int, Mapping[str, Any]] = {}
        manifests: dict[int, dict[int, StoredAt]] = {level: {} for level in range(1, levels + 1)}
        for each in reports:
            manifests[each.level][each.shard] = each.manifest
            if each.clocks is not None:
                clocks[each.level] = each.clocks
        for level, known in manifests.items():
            if known.keys() != set(range(shards)):
                raise ValueError(f"level {level} has reports of {len(known)} of its {shards} shards")
        return Version(
            {
                level: LevelState(clocks.get(level), tuple(known[shard] for shard in range(shards)))
                for level, known in manifests.items()
            }
        )

    def write(self, files: Files, batch: int) -> None:
        """Store this version as the state after `batch`."""
        levels = {
            str(number): {"clocks": level.clocks, "manifests": level.manifests} for number, level in self.levels.items()
        }
        files.put(_name(batch), [json.dumps(levels, separators=(",", ":")).encode()])

    @staticmethod
    def before(files: Files, batch: int) -> Version:
        """Return the state that `batch` starts from: none before the first. Raises StateMissing."""
        if batch == 0:
            return Version({})
        written = files.get(_name(batch - 1))
        if not written:  # empty after a loss of power
            raise StateMissing("the checkpoint", _name(batch - 1))
        return Version(
            {
                int(number): LevelState(level["clocks"], tuple(StoredAt(*place) for place in level["manifests"]))
                for number, level in json.loads(written).items()
            }
        )


def _name(batch: int) -> str:
    return f"{FOLDER}/{batch:09d}.json"


def batch_of(name: str) -> int:
    """Return the batch of a file in FOLDER, or of a file of blocks."""
    return int(name[:9])
