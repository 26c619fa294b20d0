"""Options of the broker's JVM with which it starts soon."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from service.host.machine import find_java

QUICK_START = ("-XX:TieredStopAtLevel=1",)
"""A third less work until the broker is ready, at the price of throughput later: measure without it."""

CREATE = "-XX:ArchiveClassesAtExit="
"""The option with which a JVM writes the classes that it has loaded to a file, which takes some seconds at its end."""


def class_archive(jars: Sequence[Path]) -> Path:
    """Return the place of the archive of classes for this Java and these `jars`, whether or not it exists; see
    `class_archive`."""
    parts = [str(Path(find_java()).resolve()), *(f"{jar.resolve()} {jar.stat().st_size}" for jar in jars)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return jars[0].with_name(f"broker-classes-{digest[:16]}.jsa")


def creates_archive(given: Sequence[str]) -> bool:
    """Return whether a JVM with the options `given` makes an archive of its classes."""
    return any(option.startswith(CREATE) for option in given)


def mapped_classes(jars: Sequence[Path]) -> list[str]:
    """Return the options with which a JVM maps the archive of classes; none if there is no archive."""
    archive = class_archive(jars)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
