"""Removing the files of a checkpoint that no version needs any more, including those of failed attempts."""

from __future__ import annotations

from service.checkpoint import answers, blocks, version
from service.checkpoint.blocks import Manifest
from service.checkpoint.files import Files
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
    needed: set[str] = set()
    for level in Version.before(files, oldest + 1).levels.values():
        for place in level.manifests:
            needed.add(place.file)
            manifest = Manifest.from_bytes(files.block(place).to_pybytes())
            needed.update(block.file for block in manifest.blocks.values())
    old = {f"{blocks.FOLDER}/{name}" for name in files.names(blocks.FOLDER) if batch_of(name) <= oldest}
    files.remove(sorted(old - needed))
    files.remove(f"{answers.FOLDER}/{name}" for name in files.names(answers.FOLDER) if batch_of(name) <= oldest)
    files.remove(f"{version.FOLDER}/{name}" for name in files.names(version.FOLDER) if batch_of(name) < oldest)
