"""A table with one row a key: a batch reads what is kept beside its own rows, and writes what is there now.

Law: after `write` the table has, for each key that was read, the row that was written or none, and every other row as
it was. A trace is replaced by the hash of a key as a whole, so the rows of other keys that share one are written again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Mask, Positions, Times, among, distinct
from operators.columns import numbered
from operators.hashing import Hashes, bucket_hash
from operators.names import AT, FOUND, PREVIOUS, SORT_KEY, WRITTEN
from operators.sql import Sql
from operators.sql_text import join, named, of, same, select
from operators.state.block import SortKeys
from operators.state.contents import TableKind
from operators.state.lookup import find, find_groups, nested, sort_keys_of
from operators.state.operator_state import State
from operators.state.tables.hashed import HashedTable


class KeyedRows(NamedTuple):
    """Each row of a batch beside the row that is kept for its key.

    `rows` has the columns of the batch, then those of the table with names that begin with PREVIOUS (NULL where nothing
    is kept), then FOUND. `sort_keys`, `found` and `others` are the table's own: the hashes of `rows`, those of all rows
    that were found, and the rows among these whose keys are not in the batch.
    """

    rows: pa.Table
    sort_keys: SortKeys
    found: SortKeys
    others: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTable(HashedTable):
    """One row for each value of the first `keys` columns of `schema`.

    Where rows are also read by `group`, the positions of some of these columns, the rows of a group are kept together.
    """

    keys: int
    group: tuple[int, ...] | None = None

    @property
    def kind(self) -> TableKind:
        return TableKind.KEYED

    def read(
        self, state: State, rows: pa.Table, sql: Sql, *, unite: Callable[[pa.Table], pa.Table] | None = None
    ) -> KeyedRows:
        """Pair `rows`, which begin with the columns of the key and have no key twice, with those that are kept.

        They come in an order of the table's own, the same on a replay. Where keys may be there twice, `unite` makes one
        row of those of one key; it is called if any place is there twice.
        """
        sequence, sort_keys = self._sorted(state, rows)
        if unite is not None and _repeats(sort_keys):
            rows = unite(rows)
            sequence, sort_keys = self._sorted(state, rows)
        repeated = _repeats(sort_keys)
        rows = rows.take(pa.array(sequence)).combine_chunks()
        before = find(self.trace(state), distinct(sort_keys) if repeated else sort_keys)
        found = sort_keys_of(before)
        before = before.drop_columns([SORT_KEY])
        at = np.searchsorted(sort_keys, found)
        places = np.full(len(sort_keys), -1, dtype=np.int64)
        places[at] = np.arange(len(found))
        one_to_one = not repeated and int((places >= 0).sum()) == len(found)
        if one_to_one and same_keys(rows.take(pa.array(at)), before, self.keys):
            others = before.slice(0, 0)
        else:
            places, others = _joined(sql, rows, before, found, self.keys)
        beside = before.take(pa.array(places, mask=places < 0))
        return KeyedRows(side_by_side(rows, beside, places >= 0), sort_keys, found, others)

    def write(
        self,
        state: State,
        pairs: KeyedRows,
        rows: pa.Table,
        now: int = 0,
        *,
        stays: Mask | None = None,
        changed: Mask | None = None,
        renewed: Mask | None = None,
    ) -> None:
        """Put `rows`, one for each of `pairs.rows` in their order, in place of what was kept.

        A row that does not stay is deleted. One that is not `changed` is as it was and costs no write, unless its time
        to live is `renewed`: it restarts at `now` (ms). Each of these is true of all rows where it is None.
        """
        if self.ttl:
            changed = None if changed is None or renewed is None else changed | renewed
        others = pairs.others
        if others.num_rows == 0:
            self._rewrite(state, rows, pairs.sort_keys, pairs.found, now, stays=stays, changed=changed, stamps=now)
            return
        names, everything = self.schema.names, np.ones(rows.num_rows, dtype=np.bool_)
        untouched = np.ones(others.num_rows, dtype=np.bool_)
        self.write_beside(
            state,
            pairs,
            others,
            pa.concat_tables([rows.select(names), others.select(names)]),
            now,
            stays=np.concatenate([everything if stays is None else stays, untouched]),
            changed=np.concatenate([everything if changed is None else changed, ~untouched]),
        )

    def read_beside(self, state: State, pairs: KeyedRows, hashes: Hashes) -> pa.Table:
        """Return the kept rows of the groups with these `hashes`, and at times others, whose keys are not those of
        `pairs`."""
        rows = find_groups(self.trace(state), hashes)
        rows = rows.filter(pa.array(~among(sort_keys_of(rows), pairs.sort_keys)))
        if pairs.others.num_rows:
            rows = pa.concat_tables([rows, pairs.others.select(rows.column_names)]).combine_chunks()
        return rows

    def write_beside(
        self,
        state: State,
        pairs: KeyedRows,
        beside: pa.Table,
        rows: pa.Table,
        now: int,
        *,
        stays: Mask,
        changed: Mask,
    ) -> None:
        """Write the keys in `pairs`, as `write` does, and the rows that were read `beside` them with hidden columns.

        `rows`, `stays` and `changed` are those of the keys, then those of the rows beside. The time to live restarts
        for those that are `changed`, and for rows that share a hash with another.
        """
        there, known = pairs.rows.column(FOUND).to_numpy(), sort_keys_of(beside)
        stamps: Times | int = now
        if self.ttl:
            kept = beside.column(WRITTEN).to_numpy()
            stamps = np.where(changed, now, np.concatenate([np.full(len(there), now), kept]))
        places = np.concatenate([pairs.sort_keys, known])
        found = np.concatenate([pairs.sort_keys[there], known])
        self._rewrite(state, rows, places, found, now, stays=stays, changed=changed, stamps=stamps)

    def read_groups(self, state: State, rows: pa.Table) -> pa.Table:
        """Return all kept rows of the groups of `rows`, which begin with the columns of the key, and at times of
        others."""
        assert self.group is not None, f"the rows of {self.name} are not kept in groups"
        return find_groups(self.trace(state), self.hash(state, rows, self.group)).select(self.schema.names)

    def _sorted(self, state: State, rows: pa.Table) -> tuple[Positions, Hashes]:
        """The order of `rows` by their places, and the places in that order."""
        key = range(self.keys)
        if self.group is None:
            sort_keys = self.hash(state, rows, key)
        else:
            sort_keys = nested(self.hash(state, rows, self.group), bucket_hash(rows, key))
        sequence = np.argsort(sort_keys, kind="stable")
        return sequence, sort_keys[sequence]


def _repeats(ordered: Hashes) -> bool:
    """Whether any of the `ordered` hashes is there twice."""
    return bool((ordered[1:] == ordered[:-1]).any())


def side_by_side(rows: pa.Table, before: pa.Table, found: Mask) -> pa.Table:
    """Return the columns of both, those `before` with PREVIOUS, and which rows were `found`."""
    columns = [*rows.columns, *before.columns, pa.array(found)]
    names = [*rows.column_names, *(PREVIOUS + name for name in before.column_names), FOUND]
    return pa.table(columns, names=names)


def same_keys(rows: pa.Table, before: pa.Table, keys: int) -> bool:
    """Return whether the keys of both tables are equal row by row; a type that Arrow cannot compare counts as
    different."""
    for place in range(keys):
        left, right = rows.column(place), before.column(place)
        if pa.types.is_nested(left.type):
            return False
        equal = pc.equal(left, right)
        if equal.null_count:
            equal = pc.or_(pc.fill_null(equal, False), pc.and_(left.is_null(), right.is_null()))
        if not pc.all(equal, min_count=0).as_py():
            return False
    return True


def _joined(sql: Sql, rows: pa.Table, before: pa.Table, found: SortKeys, keys: int) -> tuple[Positions, pa.Table]:
    """The place in `before` of each row's key, -1 for none, and the rows of `before` that have no place.

    By a join on the keys: different keys share a hash, or Arrow cannot tell whether they do.
    """
    on = same(of("r", rows.column_names[:keys]), of("b", before.column_names[:keys]))
    statement = select([named(f"r.{AT}", "r"), named(f"b.{AT}", "b")], join("r", "b", on))
    matches = sql(statement, {"r": numbered(rows), "b": numbered(before)})
    places = np.full(rows.num_rows, -1, dtype=np.int64)
    places[matches.column("r").to_numpy()] = matches.column("b").to_numpy()
    alone = np.ones(before.num_rows, dtype=np.bool_)
    alone[matches.column("b").to_numpy()] = False
    return places, before.append_column(SORT_KEY, pa.array(found)).filter(pa.array(alone))
