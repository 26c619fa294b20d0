"""A table of groups of rows: a batch reads all rows of the groups that it touches, and writes those that change.

Law: `write` leaves every row as it was that was not read. Of the rows that were read, those that stay are there
afterwards, and the others are not. A trace is replaced by hash as a whole, so rows that share a hash with one that is
written are written again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times, among, distinct
from operators.hashing import Hashes, bucket_hash
from operators.names import SORT_KEY, WRITTEN
from operators.state.block import SortKeys
from operators.state.contents import TableKind
from operators.state.lookup import LOW_HALF, find, find_between, find_groups, nested, sort_keys_of
from operators.state.operator_state import State
from operators.state.tables.hashed import HashedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedTable(HashedTable):
    """Groups of rows that agree in the columns at `group`.

    A group is kept in one place, and written as a whole: for groups of a few rows. Where `members` is given, each row
    has a place of its own within that of its group, found by its first `members` columns, and is written alone.

    The rows that are read have their place in a hidden column, SORT_KEY; `places_of` gives it.
    """

    group: tuple[int, ...]
    members: int | None = None

    @property
    def kind(self) -> TableKind:
        return TableKind.KEYED

    def hashes(self, state: State, rows: pa.Table) -> Hashes:
        """Return the hash of the group of each of `rows`, by which groups are read."""
        return self.hash(state, rows, self.group)

    def placed(self, state: State, rows: pa.Table) -> pa.Table:
        """Return `rows` with their places, as the rows that are read have them."""
        return at_places(rows, self._places(state, rows))

    def numbered(self, state: State, rows: pa.Table, first: int) -> pa.Table:
        """Return `rows` with places of their own, by numbers from `first` on instead of by their members.

        No two rows that are kept share one, as long as these are not four billion rows apart.
        """
        numbers = np.arange(first, first + rows.num_rows, dtype=np.uint64)
        return at_places(rows, (self.hashes(state, rows) & ~LOW_HALF) | (numbers & LOW_HALF))

    def read(self, state: State, hashes: Hashes) -> pa.Table:
        """Return all rows of the groups with these `hashes`, and at times of other groups."""
        if self.members is not None:
            return find_groups(self.trace(state), hashes)
        return find(self.trace(state), distinct(hashes))

    def read_all(self, state: State) -> pa.Table:
        """Return all rows of all groups."""
        return find_between(self.trace(state), np.array([0], np.uint64), np.array([2**64 - 1], np.uint64))

    def read_members(self, state: State, rows: pa.Table) -> pa.Table:
        """Return the kept rows that are the same members of the same groups as `rows`, and at times others."""
        return find(self.trace(state), distinct(self._places(state, rows)))

    def write(
        self,
        state: State,
        kept: pa.Table | None,
        rows: pa.Table,
        now: int = 0,
        *,
        stays: Mask | None = None,
        changed: Mask | None = None,
        renewed: Mask | None = None,
        came: pa.Table | None = None,
    ) -> None:
        """Put `rows` in place of `kept`, which is what was read and has its hidden columns; None where nothing was.

        `rows` are all of the kept rows and new ones, with their places if they are known. Those that `stays` leaves out
        are deleted. What shares no place with a `changed` row, or with one of those that `came` and may have left no
        row, is as it was, and not written. The time to live of the
        `renewed` rows restarts at `now` (ms), and that of rows that share a place; the others have their own, in
        WRITTEN. Each of these is true of all rows where it is None.
        """
        places: SortKeys = sort_keys_of(rows) if SORT_KEY in rows.column_names else self._places(state, rows)
        stamps: Times | int = now
        if self.ttl and renewed is not None:
            stamps = np.where(renewed, now, rows.column(WRITTEN).fill_null(now).to_numpy())
        self._rewrite(
            state,
            rows,
            places,
            np.empty(0, dtype=np.uint64) if kept is None else places_of(kept),
            now,
            stays=stays,
            changed=changed,
            stamps=stamps,
            touched=None if came is None else places_of(came),
        )

    def _places(self, state: State, rows: pa.Table) -> SortKeys:
        hashes = self.hashes(state, rows)
        return hashes if self.members is None else nested(hashes, bucket_hash(rows, range(self.members)))


def at_places(rows: pa.Table, places: Hashes) -> pa.Table:
    """Return `rows` with the `places` that they have."""
    return rows.append_column(SORT_KEY, pa.array(places))


def numbers_of(rows: pa.Table) -> Hashes:
    """Return the numbers of rows that were `numbered`; of others what orders the members of a group."""
    return places_of(rows) & LOW_HALF


def places_of(rows: pa.Table) -> Hashes:
    """Return the places of rows that were read, or `placed`: of rows of one group equal; so may be those of others."""
    return sort_keys_of(rows)


def united(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Return what was read of a table in two ways: `rows`, and those of `more` in other places."""
    new = ~among(places_of(more), places_of(rows))
    return pa.concat_tables([rows, more.filter(pa.array(new))]).combine_chunks()
