"""A table of rows that are only added, found by a key, until they are too old (`time_to_live.py`)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from operators.arrays import distinct
from operators.hashing import Hashes
from operators.state.contents import TableKind
from operators.state.lookup import find
from operators.state.operator_state import State
from operators.state.tables.hashed import HashedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTable(HashedTable):
    """Rows by the columns at `key`; equal rows are there as often as they were added."""

    key: tuple[int, ...]

    @property
    def kind(self) -> TableKind:
        return TableKind.MULTISET

    def hashes(self, state: State, rows: pa.Table) -> Hashes:
        """Return the hash of the key of each of `rows`, whose columns begin like those of the table."""
        return self.hash(state, rows, self.key)

    def add(self, state: State, rows: pa.Table, now: int = 0) -> None:
        """Add `rows`, which live from `now` (ms) on."""
        kept = self._stamped(rows.select(self.schema.names), now)
        self.trace(state).add(kept, self.hashes(state, rows))

    def read(self, state: State, hashes: Hashes) -> pa.Table:
        """Return the rows whose keys have one of these `hashes`, and with that at times other keys."""
        return find(self.trace(state), distinct(hashes)).select(self.schema.names)
