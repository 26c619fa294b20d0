"""Removing the files of a checkpoint that no version needs any more, including those of failed attempts."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from service.checkpoint import answers, blocks, version
from service.checkpoint.blocks import Manifest
from service.checkpoint.files import Files, StateMissing
from service.checkpoint.version import Version, batch_of

KEPT = 10
"""The number of versions that are kept. Spark goes back by one at most; the others are for investigations."""


def sweep(files: Files, done: int) -> None:
    """Remove the files that only versions before `done - KEPT` needed, once batch `done` is done.

    A block that the oldest kept version does not list, and that is not newer, is in no later version either. A newer
    one is left alone: it may belong to a task that runs now.
    """
    oldest = done - KEPT
    if oldest < min((batch_of(name) for name in files.names(version.FOLDER) if name[:9].isdigit()), default=0):
        return  # the job is young, or had no state until recently
    needed = _files_of(files, Version.before(files, oldest + 1))
    old = {f"{blocks.FOLDER}/{name}" for name in files.names(blocks.FOLDER) if batch_of(name) <= oldest}
    files.remove(sorted(old - needed))
    files.remove(f"{answers.FOLDER}/{name}" for name in files.names(answers.FOLDER) if batch_of(name) <= oldest)
    files.remove(f"{version.FOLDER}/{name}" for name in files.names(version.FOLDER) if batch_of(name) < oldest)


def begun_files(files: Files, batch: int) -> list[str]:
    """Return the names, within the folder of blocks, of the files that attempts of `batch` have written so far."""
    return [name for name in files.names(blocks.FOLDER) if batch_of(name) >= batch]


def remove_leftovers(files: Files, batch: int, left: Iterable[str] | None = None) -> None:
    """Remove the files that attempts of `batch` have left: those of `left` (`begun_files`), by default all. The batch
    is not done, and is begun again after this.

    Law: a file of a batch is needed only if a version of that batch names it, and only the driver that ran an attempt
    names its files. So none of those drivers may be able to write a version any more: the caller holds the lock of the
    folder, and no query of its own runs; or the batch was given up, or its attempts were fenced (`replanning`), so that
    they cannot end.

    A version that was written before is kept, with all that it names: the JVM of a driver that was killed may note the
    batch as done a moment later. A task that is still running may write another file: the next call removes it.
    """
    try:
        after = Version.before(files, batch + 1)
    except StateMissing:
        after = Version({})
    with suppress(OSError, StateMissing):  # what stays costs space until the sweep
        needed = _files_of(files, after)
        names = begun_files(files, batch) if left is None else left
        files.remove(sorted({f"{blocks.FOLDER}/{name}" for name in names} - needed))


def _files_of(files: Files, version: Version) -> set[str]:
    """The files of the manifests of a version, and of the blocks that these list."""
    needed: set[str] = set()
    for level in version.levels.values():
        for place in level.manifests:
            needed.add(place.file)
            manifest = Manifest.from_bytes(files.block(place).to_pybytes())
            needed.update(block.file for block in manifest.blocks.values())
    return needed
