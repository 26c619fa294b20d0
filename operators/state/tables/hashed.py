"""What tables have in common whose rows are found by the hash of a key: how rows are hashed, and how long they live."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Mask, Times, among, repeated
from operators.hashing import Hashes
from operators.names import WRITTEN
from operators.state.block import SortKeys
from operators.state.contents import TableKind, TraceSpec
from operators.state.operator_state import State
from operators.state.tables.table import StateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedTable(StateTable):
    """A table whose rows are found by a hash, and may have a time to live.

    A row that has not been written for `ttl` ms of processing time is forgotten (0 = never). With `expires_by`, a
    BIGINT column of `schema`, a row is forgotten by `expire_upto` instead. Where rows are found by more columns than
    the operator's key has, the first `placing` of them are that key.
    """

    ttl: int = 0
    expires_by: str | None = None
    placing: int | None = None

    @property
    @abstractmethod
    def kind(self) -> TableKind:
        """What writing a row means."""

    def spec(self) -> TraceSpec:
        hidden = [pa.field(WRITTEN, pa.int64())] if self.ttl else []
        return TraceSpec(
            schema=pa.schema([*self.schema, *hidden]),
            kind=self.kind,
            timestamp=WRITTEN if self.ttl else self.expires_by,
            placing=self.placing,
        )

    def hash(self, state: State, rows: pa.Table, columns: Sequence[int]) -> Hashes:
        """Return the hash of each of `rows` by the key at `columns`. Equal keys have equal hashes; so may others."""
        return self.trace(state).key_hash(rows, columns)

    def expire(self, state: State, now: int) -> None:
        """Forget the rows that have not been written for the time to live."""
        if self.ttl:
            self.trace(state).expire(now - self.ttl)

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
        is when each of `rows` was last written. Of the rows in one place none may expire before what it hides there, so
        these count as written now.
        """
        tombstone_stamp = self._tombstone_stamp(rows, now)
        if changed is not None:
            own = places[changed]
            touched = own if touched is None else np.concatenate([own, touched])
            written = among(places, touched)
            stays = written if stays is None else stays & written
            found = found[among(found, touched)]
        rows = rows.select(self.schema.names)
        if self.ttl:
            stamps = (
                np.full(rows.num_rows, stamps) if isinstance(stamps, int) else np.where(repeated(places), now, stamps)
            )
            rows = rows.append_column(WRITTEN, pa.array(stamps))
        if stays is not None:
            rows, places = rows.filter(pa.array(stays)), places[stays]
        self.trace(state).replace(rows, places, found, tombstone_stamp)

    def _tombstone_stamp(self, rows: pa.Table, now: int) -> int:
        """What the tombstones of some of `rows` expire by: no earlier than what they hide."""
        if self.expires_by is None:
            return now
        return int(pc.max(rows.column(self.expires_by)).as_py() or 0)
