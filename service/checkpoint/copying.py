"""A consistent copy of a checkpoint, also while a job uses it.

Everything that the state after a batch needs is in files that never change. So a copy of a finished batch is complete,
whatever the job does meanwhile. Only the sweep may remove such files, ten batches later. Then a newer batch is copied,
most of whose files are copied already.
"""

from __future__ import annotations

from typing import NamedTuple

from service.checkpoint.batch_log import COMMITS, OFFSETS, SOURCES
from service.checkpoint.blocks import Manifest
from service.checkpoint.files import Files, StateMissing
from service.checkpoint.small_files import FOLDER, QUERY, SmallFiles
from service.checkpoint.version import FOLDER as VERSIONS
from service.checkpoint.version import Version, batch_of

TRIES = 5
"""The number of attempts: each fails only if the job does ten batches, and sweeps, during it."""

OF_THE_PROCESS = frozenset({"tries"})
"""Small files that belong to processes, not to the job."""


class CopyRefused(Exception):
    """There is nothing to copy, or no place for the copy; the text says why."""


class Copied(NamedTuple):
    """The batch that a copy ends with; files and bytes of it."""

    batch: int
    files: int
    bytes: int


def done_batches(files: Files) -> list[int]:
    """Return the batches that can be restored, oldest first: their offsets and their state are still there, and
    are those of the query that the checkpoint has now."""
    planned, done = (_numbers(files, log) for log in (OFFSETS, COMMITS))
    versions = {batch_of(name) for name in files.names(VERSIONS) if name.endswith(".json") and name[:9].isdigit()}
    whole = [n for n in done & planned if n == 0 or {n - 1} <= done & planned]
    change = (SmallFiles(files).read(QUERY) or {}).get("change") or {"batch": 0}
    return sorted(n for n in whole if n >= change["batch"] and (not versions or n in versions))


def copy(source: Files, target: Files, batch: int | None = None) -> Copied:
    """Copy the checkpoint after `batch`, by default the newest finished one. Raises CopyRefused."""
    if any(target.names(log) for log in (OFFSETS, COMMITS, FOLDER)):
        raise CopyRefused("there is something at the place that the copy is to go to\n  hint:   name a new folder")
    copied: dict[str, int] = {}
    for left in reversed(range(TRIES)):
        known = done_batches(source)
        if not known or (batch is not None and batch not in known):
            which = "no batch is done" if not known else f"batch {batch} is not among batches {known[0]} to {known[-1]}"
            raise CopyRefused(f"there is nothing to copy: {which}")
        wanted = known[-1] if batch is None else batch
        try:
            _copy(source, target, wanted, copied)
        except StateMissing:
            if not left or batch is not None:
                raise
            continue
        return Copied(wanted, len(copied), sum(copied.values()))
    raise AssertionError("there is one try at least")


def _copy(source: Files, target: Files, batch: int, copied: dict[str, int]) -> None:
    def take(name: str, *, again: bool = False) -> None:
        if name in copied and not again:
            return
        found = source.get(name)
        if found is None:
            raise StateMissing("the checkpoint", name)
        target.put(name, [found])
        copied[name] = len(found)

    versions = source.names(VERSIONS)
    if versions:
        for level in Version.before(source, batch + 1).levels.values():
            for place in level.manifests:
                take(place.file)
                manifest = Manifest.from_bytes(source.block(place).to_pybytes())
                for file in sorted({block.file for block in manifest.blocks.values()}):
                    take(file)
        take(f"{VERSIONS}/{batch:09d}.json")
    known, made = SmallFiles(source), SmallFiles(target)
    names = {name.split(".")[0] for name in source.names(FOLDER) if name.endswith(".json") and name[0] != "."}
    for name in sorted(names - OF_THE_PROCESS):
        made.write(name, known.read(name))
        copied[f"{FOLDER}/{name}.json"] = 0
    take("metadata", again=True)
    number = 0
    while found := [name for name in source.names(f"{SOURCES}/{number}") if name.isdigit()]:
        for name in found:
            take(f"{SOURCES}/{number}/{name}", again=True)
        number += 1
    # The log of finished batches comes last: without it nothing counts as a checkpoint.
    for log in (OFFSETS, COMMITS):
        for each in (batch - 1, batch):
            if each >= 0:
                take(f"{log}/{each}", again=True)


def _numbers(files: Files, log: str) -> set[int]:
    return {int(name) for name in files.names(log) if name.isdigit()}
