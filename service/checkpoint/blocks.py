"""The files that a task writes for its shard in one batch: blocks, and the manifest if it changed.

Small blocks share a file, since in an object store each file is a request. A large block has a file of its own, so that
neither is kept because of the other. A file's name contains the batch and is never used again: two attempts of one
task, one of which may be wrongly thought dead, never write the same file. It also says whether a run has written it
that repeats the batch: such a run can be kept from storing a version (`service.deployment.replanning`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from service.checkpoint.files import ALIGNED, Files, StoredAt

FOLDER = "tailrace/state"

_REPEATED = "r"
"""Begins the last part of the name of a file of a repeated batch; in other names that is a hexadecimal number."""

LARGE = 4 << 20
"""The size in bytes from which a block has a file of its own."""


class Manifest(NamedTuple):
    """The manifest of a shard as the runtime wrote it, and where each of its blocks is."""

    text: bytes
    blocks: Mapping[str, StoredAt]

    def to_bytes(self) -> bytes:
        """Return the manifest as it is stored; each file name is stored once."""
        files = sorted({place.file for place in self.blocks.values()})
        number = {file: i for i, file in enumerate(files)}
        blocks = {key: (number[p.file], p.offset, p.length) for key, p in sorted(self.blocks.items())}
        return json.dumps({"text": self.text.decode(), "files": files, "blocks": blocks}).encode()

    @staticmethod
    def from_bytes(stored: bytes) -> Manifest:
        """Return what `to_bytes` wrote."""
        fields = json.loads(stored)
        places = {
            k: StoredAt(fields["files"][file], offset, length) for k, (file, offset, length) in fields["blocks"].items()
        }
        return Manifest(fields["text"].encode(), places)


class BlockWriter:
    """Writes the files of one attempt of one task. `repeats` says that the batch was begun before its run."""

    def __init__(self, files: Files, batch: int, level: int, shard: int, *, repeats: bool = False) -> None:
        self._files = files
        attempt = f"{_REPEATED if repeats else ''}{uuid.uuid4().hex[:12]}"
        self._stem = f"{FOLDER}/{batch:09d}-{level}-{shard}-{attempt}"
        self._small: list[pa.Buffer | bytes] = []
        self._places: list[tuple[StoredAt, pa.Buffer]] = []
        self._size = 0
        self._large = 0

    def add(self, data: pa.Buffer) -> StoredAt:
        """Write a block, now or with `close`. Return where it will be."""
        if data.size >= LARGE:
            place = self._put(data)
        else:
            place = StoredAt(self._stem, self._size, data.size)
            padding = -data.size % ALIGNED
            self._small += [data, bytes(padding)]
            self._size += data.size + padding
        self._places.append((place, data))
        return place

    def add_at_once(self, data: pa.Buffer) -> StoredAt:
        """Write a block now, in a file of its own; it is not held until `close`."""
        place = self._put(data)
        self._files.written(place, data)
        return place

    def _put(self, data: pa.Buffer) -> StoredAt:
        self._large += 1
        place = StoredAt(f"{self._stem}.{self._large}", 0, data.size)
        self._files.put(place.file, [data])
        return place

    def close(self) -> None:
        """Write everything that was added and is not written yet."""
        if self._small:
            self._files.put(self._stem, self._small)
        for place, data in self._places:
            self._files.written(place, data)
        self._small, self._places = [], []


def of_repeat(name: str) -> bool:
    """Return whether a run has written this file of FOLDER that repeats its batch."""
    return name.split("-")[-1].startswith(_REPEATED)
