"""The common part of tables whose rows are found by the hash of a key: how rows are hashed and written.

Their rows may have a time to live: `time_to_live.py` stamps them, and forgets those that have not been written for so
long.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times, among
from operators.hashing import Hashes
from operators.state.block import SortKeys
from operators.state.contents import TableKind, TraceSpec
from operators.state.operator_state import State
from operators.state.tables.time_to_live import AgingTable


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedTable(AgingTable):
    """A table whose rows are found by a hash, and may have a time to live.

    Where rows are found by more columns than the operator's key has, the first `placing` of them are that key.
    """

    placing: int | None = None

    @property
    @abstractmethod
    def kind(self) -> TableKind:
        """What writing a row means."""

    def spec(self) -> TraceSpec:
        return TraceSpec(schema=self._stored, kind=self.kind, timestamp=self._ends_by, placing=self.placing)

    def hash(self, state: State, rows: pa.Table, columns: Sequence[int]) -> Hashes:
        """Return the hash of each of `rows` by the key at `columns`. Equal keys have equal hashes; so may others."""
        return self.trace(state).key_hash(rows, columns)

    def _rewrite(
        self,
        state: State,
        rows: pa.Table,
        places: SortKeys,
        found: SortKeys,
        now: int,
        *,
        stays: Mask | None,
        changed: Mask | None,
        stamps: Times | int,
        touched: SortKeys | None = None,
    ) -> None:
        """Put those of `rows` that stay in the `places` given, in place of the rows that were `found` there.

        Only what shares a place with a `changed` row is written, and what is in one of the places `touched`. `stamps`
        is when each of `rows` was last written; those that share a place count as written now.
        """
        tombstone_stamp = self._tombstone_stamp(rows, now)
        if changed is not None:
            own = places[changed]
            touched = own if touched is None else np.concatenate([own, touched])
            written = among(places, touched)
            stays = written if stays is None else stays & written
            found = found[among(found, touched)]
        rows = self._stamped(rows.select(self.schema.names), self._stamps_in(places, stamps, now))
        if stays is not None:
            rows, places = rows.filter(pa.array(stays)), places[stays]
        self.trace(state).replace(rows, places, found, tombstone_stamp)
