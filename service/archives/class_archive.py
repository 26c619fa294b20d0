"""Archives of the classes that a JVM loads, parsed and verified, for later JVMs to map into memory.

They lie beside the Java archives of their classes. Each is for one Java and one class path.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

CREATE = "-XX:ArchiveClassesAtExit="
"""The option with which a JVM writes its loaded classes to a file, which takes some seconds at its end."""


def class_archive(name: str, java: Path, class_path: Iterable[Path], folder: Path) -> Path:
    """Return the place in `folder` of the archive `name` for this Java and class path, whether or not it exists."""
    parts = [str(java.resolve()), *(f"{jar} {jar.stat().st_size}" for jar in class_path)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return folder / f"{name}-{digest[:16]}.jsa"


def creates_archive(given: Sequence[str]) -> bool:
    """Return whether a JVM with the options `given` makes an archive."""
    return any(option.startswith(CREATE) for option in given)


def mapped_classes(archive: Path) -> list[str]:
    """Return the options with which a JVM maps an archive; none if it does not exist."""
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def put(part: Path, target: Path, trouble: str) -> None:
    """Put what a JVM has written to `part` in its place, and remove the archives of the same name for other Javas and
    class paths. With `trouble`, or where nothing was written, print a warning instead."""
    if trouble or not part.exists():
        part.unlink(missing_ok=True)  # an archive of what was loaded until then would be useless
        print(
            f"warning: no archive of Java classes was made; starts will take longer {trouble}".rstrip(), file=sys.stderr
        )
        return
    for old in target.parent.glob(f"{target.stem.rpartition('-')[0]}-*.jsa"):
        old.unlink()
    # A JVM ends with a fault at once where it maps an archive that a loss of power has cut short.
    with part.open("rb") as written:
        os.fsync(written.fileno())
    part.rename(target)
