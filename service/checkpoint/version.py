"""The state after one batch: where the manifest of each bucket is, and the clock of each level.

The driver writes a version when all tasks of its batch are done, before Spark notes the batch as done. A task of batch
N starts from version N - 1, which is settled by then; whatever a batch writes that is not done again and again counts
for nothing, since no version names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from service.checkpoint.files import Files, StateMissing, StoredAt

FOLDER = "tailrace/versions"


class ShardState(NamedTuple):
    """What the task of a shard tells of its level after a batch: the manifests of its buckets. The clocks are those of
    the level; every shard knows them, and the first tells them."""

    level: int
    clocks: Mapping[str, Any] | None
    manifests: Mapping[int, StoredAt]

    def to_json(self) -> bytes:
        """The payload of an envelope."""
        return json.dumps({"level": self.level, "clocks": self.clocks, "manifests": self.manifests}).encode()

    @staticmethod
    def from_json(payload: bytes) -> ShardState:
        """What `to_json` wrote."""
        told = json.loads(payload)
        return ShardState(
            told["level"], told["clocks"], {int(k): StoredAt(*place) for k, place in told["manifests"].items()}
        )


class LevelState(NamedTuple):
    """One level of a version."""

    clocks: Mapping[str, Any] | None
    manifests: Mapping[int, StoredAt]


@dataclass(frozen=True)
class Version:
    """The state after a batch, by level."""

    levels: Mapping[int, LevelState]

    @staticmethod
    def of(told: Iterable[ShardState], levels: int, buckets: int) -> Version:
        """The version that the tasks of a batch have told of. Raises ValueError where a bucket is missing."""
        clocks: dict[int, Mapping[str, Any]] = {}
        manifests: dict[int, dict[int, StoredAt]] = {level: {} for level in range(1, levels + 1)}
        for shard in told:
            manifests[shard.level].update(shard.manifests)
            if shard.clocks is not None:
                clocks[shard.level] = shard.clocks
        for level, known in manifests.items():
            if known.keys() != set(range(buckets)):
                raise ValueError(f"level {level} has told of {len(known)} of its {buckets} buckets")
        return Version({level: LevelState(clocks.get(level), known) for level, known in manifests.items()})

    def write(self, files: Files, batch: int) -> None:
        """Make it the state after `batch`."""
        levels = {
            str(number): {
                "clocks": level.clocks,
                "manifests": [level.manifests[bucket] for bucket in range(len(level.manifests))],
            }
            for number, level in self.levels.items()
        }
        files.put(_name(batch), [json.dumps(levels, separators=(",", ":")).encode()])

    @staticmethod
    def before(files: Files, batch: int) -> Version:
        """The state that `batch` starts from: none before the first. Raises StateMissing."""
        if batch == 0:
            return Version({})
        written = files.get(_name(batch - 1))
        if written is None:
            raise StateMissing("the checkpoint", _name(batch - 1))
        return Version(
            {
                int(number): LevelState(
                    level["clocks"], {bucket: StoredAt(*place) for bucket, place in enumerate(level["manifests"])}
                )
                for number, level in json.loads(written).items()
            }
        )


def _name(batch: int) -> str:
    return f"{FOLDER}/{batch:09d}.json"


def batch_of(name: str) -> int:
    """The batch that a file in FOLDER, or one of blocks, is of."""
    return int(name[:9])
