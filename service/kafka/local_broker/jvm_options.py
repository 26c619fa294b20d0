"""Options of the broker's JVM with which it starts soon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from service.archives.class_archive import class_archive
from service.host.machine import find_java

QUICK_START = ("-XX:TieredStopAtLevel=1",)
"""A third less work until the broker is ready, at the price of throughput later: measure without it."""


def broker_classes(jars: Sequence[Path]) -> Path:
    """Return the place of the archive of a broker's classes, whether or not it exists; see `class_archive`."""
    return class_archive("broker-classes", Path(find_java()), jars, jars[0].parent)
