"""Encoded records that wait on disk until their batch is computed: more of them than memory should hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pyarrow as pa


class RecordSpool:
    """Records in the order in which they were added, each block an Arrow IPC stream of its own, since the records of
    several tables have several schemas.

    The file is in `folder` and has no name there, so that nothing stays behind when its worker is killed. Raises
    OSError where the disk is full.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115  (open until `close`)
        self._sizes: list[int] = []

    def add(self, records: pa.RecordBatch) -> None:
        """Append a block."""
        before = self._file.tell()
        with pa.ipc.new_stream(self._file, records.schema) as stream:
            stream.write_batch(records)
        self._sizes.append(self._file.tell() - before)

    def records(self) -> Iterator[pa.RecordBatch]:
        """Read all blocks; one is in memory at a time."""
        self._file.seek(0)
        for size in self._sizes:
            with pa.ipc.open_stream(self._file.read(size)) as stream:
                yield stream.read_next_batch()

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
