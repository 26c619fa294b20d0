"""An empty data folder of a broker, as Kafka's storage tool leaves it: kept beside Kafka's archives, to be copied.

The tool takes a JVM of its own, 0.8 s of a processor. What it writes is an id of the folder and the version of the
metadata: brokers that never meet may have the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

FORMATTED = frozenset({"process.roles", "node.id", "log.dirs", "log.dir", "metadata.log.dir"})
"""The server properties on which the content of a formatted folder depends."""


def formatted_folder(jars: Sequence[Path]) -> Path:
    """Return the place of the folder that the Kafka of these archives has formatted, whether or not it exists."""
    digest = hashlib.sha256("\n".join(jar.name for jar in jars).encode()).hexdigest()
    return jars[0].parent / f"formatted-{digest[:16]}"


def copy_whole(source: Path, target: Path) -> None:
    """Copy a folder: `target` is there with all files, or not at all. Raises OSError if it is there already."""
    part = target.with_name(f"{target.name}.{uuid4().hex}")
    try:
        shutil.copytree(source, part)
        for path in filter(Path.is_file, part.rglob("*")):  # a loss of power must not leave a file that is cut short
            with path.open("rb") as copied:
                os.fsync(copied.fileno())
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
