"""A table of rows in sequences, numbered within each: ranges of numbers are read, and leave from the front.

A sequence has a place of its own. The sort key of a row is the place of its sequence, then its number: adding a row
writes that row, and reading a range reads the rows of that range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Numbers, Positions
from operators.hashing import Hashes
from operators.names import NUMBER, SORT_KEY
from operators.slots import KEYLESS, SLOT_BITS, first_hash, slots_of
from operators.state.block import SortKeys
from operators.state.contents import TableKind, TraceSpec
from operators.state.lookup import find_between
from operators.state.operator_state import State
from operators.state.tables.table import StateTable

_BITS = (64 - SLOT_BITS) // 2
_MOST = (1 << _BITS) - 1
"""The bits of a sort key behind the slot: half of them tell the sequences of a slot apart, half the rows of one. So a
sequence may keep 67 million rows at a time, and as many sequences come before one gets the place of another."""


class NumberedRows(NamedTuple):
    """Rows, which of the sequences that were asked for each is of, and its number there."""

    rows: pa.Table
    owners: Positions
    numbers: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedTable(StateTable):
    """Rows in sequences, one for each key; without a key (not `keyed`) there is one sequence, whatever its place."""

    keyed: bool

    def spec(self) -> TraceSpec:
        return TraceSpec(schema=self.schema.append(pa.field(NUMBER, pa.int64())), kind=TableKind.KEYED)

    def new_places(self, hashes: Hashes, given: int) -> Numbers:
        """Return places for new sequences, by the hashes of their keys; `given` is how many have been given before."""
        return (slots_of(hashes) << _BITS) | ((given + np.arange(len(hashes))) & _MOST)

    def read(self, state: State, places: Numbers, first: Numbers, last: Numbers) -> NumberedRows:
        """Return the rows of each of the sequences at `places` with the numbers from `first` to `last`, both
        included."""
        asked = np.flatnonzero(first <= last)
        lows, highs = (self._sort_keys(places[asked], ends[asked]) for ends in (first, last))
        wraps = lows > highs
        if wraps.any():
            whole = places[asked][wraps]
            ends = self._sort_keys(whole, np.full(len(whole), _MOST)), self._sort_keys(whole, 0 * whole)
            lows, highs = np.concatenate([lows, ends[1]]), np.concatenate([highs, highs[wraps]])
            highs[: len(wraps)][wraps] = ends[0]
        found = find_between(self.trace(state), lows, highs)
        return NumberedRows(
            found.select(self.schema.names), self._owners(found, places), found.column(NUMBER).to_numpy()
        )

    def write(self, state: State, came: NumberedRows, gone: tuple[Numbers, Numbers], places: Numbers) -> None:
        """Add the rows that `came` to the sequences at `places`, and remove those that are `gone`: the places of their
        sequences, and their numbers."""
        rows = came.rows.append_column(NUMBER, pa.array(came.numbers))
        sort_keys = self._sort_keys(places[came.owners], came.numbers)
        self.trace(state).replace(rows, sort_keys, self._sort_keys(*gone))

    def _owners(self, rows: pa.Table, places: Numbers) -> Positions:
        if not self.keyed:
            return np.zeros(rows.num_rows, dtype=np.int64)
        found = (rows.column(SORT_KEY).to_numpy() >> np.uint64(_BITS)).astype(np.int64)
        order = np.argsort(places)
        owners: Positions = order[np.searchsorted(places[order], found)]
        return owners

    def _sort_keys(self, places: Numbers, numbers: Numbers) -> SortKeys:
        """Where rows are kept: by their sequence, then by their number, of which the lower bits are enough."""
        if not self.keyed:
            return np.uint64(first_hash(KEYLESS)) | numbers.astype(np.uint64)
        return (places.astype(np.uint64) << np.uint64(_BITS)) | (numbers & _MOST).astype(np.uint64)
