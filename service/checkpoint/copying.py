"""A consistent copy of a checkpoint, also of one that a job works on.

All that the state after a batch needs is in files that nobody changes. So a copy of a batch that is done is whole,
whatever the job does meanwhile; only what the batch needs may be removed, ten batches later. Then a newer batch is
taken, of which most has been copied already.
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
"""The number of attempts: a job would have to do ten batches, and sweep, during each of them."""

OF_THE_PROCESS = frozenset({"tries"})
"""Small files that concern processes, not the job."""


class CopyRefused(Exception):
    """There is nothing to copy, or no place for it; the text says why."""


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
    """Copy what a checkpoint is after `batch`, by default the newest complete one. Raises CopyRefused."""
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
    # The log of batches that are done comes last: without it nothing is taken for a checkpoint.
    for log in (OFFSETS, COMMITS):
        for each in (batch - 1, batch):
            if each >= 0:
                take(f"{log}/{each}", again=True)


def _numbers(files: Files, log: str) -> set[int]:
    return {int(name) for name in files.names(log) if name.isdigit()}
