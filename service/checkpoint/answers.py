"""The lookup results of a batch, stored so that the batch can be repeated.

Law: the first answer is valid. A table may change between two attempts of a batch, and some tasks of the first may have
committed their rows by then. So a task stores its answer before it uses it, under a name that can be taken only once.
Every later attempt, also one of a task that was wrongly thought dead, reads that file. The name contains a digest of
the keys: a batch that is replanned with other rows asks for other keys.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pyarrow as pa

from service.checkpoint.files import Files

FOLDER = "tailrace/lookups"


class Answers:
    """The answers to one task in a batch."""

    def __init__(self, files: Files, batch: int, level: int, shard: int) -> None:
        self._files = files
        self._stem = f"{FOLDER}/{batch:09d}-{level}-{shard}"

    def of(self, lookup: str, keys: pa.Table, ask: Callable[[], pa.Table]) -> pa.Table:
        """Return the stored answer of lookup `name` to `keys`; if there is none, store and return that of `ask`."""
        name = f"{self._stem}-{lookup}-{sha256(_stored(keys)).hexdigest()[:16]}"
        kept = self._files.get(name)
        while kept == b"":
            # A loss of power has left it of a version that did not sync it. It stays as it is: who removed it could
            # remove what another try has put there meanwhile.
            name += "-again"
            kept = self._files.get(name)
        if kept is None:
            answer = _stored(ask())
            kept = answer if self._files.put_new(name, [answer]) else self._files.get(name)
            if kept is None:
                raise OSError(f"{name} existed and is now missing")
        return pa.ipc.open_stream(pa.py_buffer(kept)).read_all()


def _stored(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()
