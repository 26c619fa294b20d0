"""What a running service takes: memory by kind of process, and what it writes to a folder; watched in a thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.processes import Held, memory_by_kind
from bench.service_run import Service

_EVERY = 0.25
_MEMORY_EVERY = 2.0


class Written:
    """Bytes that were written to the files of a folder, as far as they were there at one of the looks.

    A file counts with what it has grown by. Spark writes to temporary files, which it renames: these do not count.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def look(self) -> None:
        """See what is there now."""
        now = {path: found.st_size for path, found in _files(self._folder)}
        self.bytes += sum(max(0, size - self._sizes.get(path, 0)) for path, size in now.items())
        self._sizes = now


def size_of(folder: Path) -> int:
    """Bytes of the files below `folder`; RocksDB gives a file several names, it counts once."""
    return sum({(found.st_dev, found.st_ino): found.st_size for _, found in _files(folder)}.values())


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".tmp"):
                continue
            path = os.path.join(place, name)
            try:
                yield path, os.stat(path, follow_symlinks=False)
            except FileNotFoundError:
                continue


class Footprint:
    """Watches a service while its `with` block lasts."""

    def __init__(self, service: Service, folder: Path) -> None:
        self._service, self._written = service, Written(folder)
        self._highest: dict[str, Held] = {}
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="footprint")

    def __enter__(self) -> Footprint:
        self._written.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def written(self) -> int:
        """Bytes written so far."""
        with self._lock:
            self._written.look()
            return self._written.bytes

    def highest(self) -> Mapping[str, Held]:
        """The most that each kind of process has held of its own since this was last asked, and the pages of files
        that it had mapped then."""
        with self._lock:
            self._look_at_memory()
            found, self._highest = self._highest, {}
        return found

    def _watch(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(_EVERY):
            with self._lock:
                self._written.look()
                if time.monotonic() >= due:
                    self._look_at_memory()
                    due = time.monotonic() + _MEMORY_EVERY

    def _look_at_memory(self) -> None:
        for kind, held in memory_by_kind(self._service.process.pid, self._service.folder).items():
            if held.own >= self._highest.get(kind, Held()).own:
                self._highest[kind] = held
