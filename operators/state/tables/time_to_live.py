"""The time to live of rows: each is stamped when it is written, and forgotten once its stamp is too old.

Law: of the rows in one place none expires before what it hides there. So rows that share a place are stamped with the
time of the batch, and so is the tombstone that stands for rows that are gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Times, repeated
from operators.names import WRITTEN
from operators.state.block import SortKeys
from operators.state.operator_state import State
from operators.state.tables.table import StateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class AgingTable(StateTable):
    """A table whose rows may have a time to live.

    A row that has not been written for `ttl` ms of processing time is forgotten by `expire` (0 = never). With
    `expires_by`, a BIGINT column of `schema`, a row is forgotten by `expire_upto` instead.
    """

    ttl: int = 0
    expires_by: str | None = None

    def expire(self, state: State, now: int) -> None:
        """Forget the rows that have not been written for the time to live. The operators that keep such a table call it
        in a batch, with the batch's own time `now` (ms)."""
        if self.ttl:
            self.trace(state).expire(now - self.ttl)

    @property
    def _stored(self) -> pa.Schema:
        """The columns of the table and, if its rows have a time to live, the stamp of each."""
        stamp = [pa.field(WRITTEN, pa.int64())] if self.ttl else []
        return pa.schema([*self.schema, *stamp])

    @property
    def _ends_by(self) -> str | None:
        """The column by which rows end, if they do."""
        return WRITTEN if self.ttl else self.expires_by

    def _stamped(self, rows: pa.Table, stamps: Times | int) -> pa.Table:
        """These `rows` with the times at which they were written, if they have a time to live."""
        if not self.ttl:
            return rows
        stamps = np.full(rows.num_rows, stamps) if isinstance(stamps, int) else stamps
        return rows.append_column(WRITTEN, pa.array(stamps))

    def _stamps_in(self, places: SortKeys, stamps: Times | int, now: int) -> Times | int:
        """The `stamps` of rows in these `places`: of those that share a place it is `now`."""
        return stamps if isinstance(stamps, int) else np.where(repeated(places), now, stamps)

    def _tombstone_stamp(self, rows: pa.Table, now: int) -> int:
        """What the tombstones of some of `rows` expire by: no earlier than what they hide."""
        if self.expires_by is None:
            return now
        return int(pc.max(rows.column(self.expires_by)).as_py() or 0)
