"""Bring together what a batch says of some keys and what the state knows of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from operators.state.block import SORT_KEY, SortKeys, among, distinct
from operators.state.lookup import find, sort_keys_of
from operators.state.trace import Trace

PREVIOUS = "previous_"
"""What the names of the columns that were found begin with."""

FOUND = "_found"
"""The column (BOOLEAN) that says whether anything was found."""


class KeyedRows(NamedTuple):
    """Each row of a batch beside the row that was found for its key (NULLs where none was), and their sort keys.

    `others` are rows that merely share a sort key with a touched key: a sort key is replaced as a whole, so they must
    be written again. `found` holds the sort keys of all rows found.
    """

    rows: pa.Table
    sort_keys: SortKeys
    others: pa.Table
    found: SortKeys


def read_keyed(sql: Sql, trace: Trace, rows: pa.Table, sort_keys: SortKeys, keys: int) -> KeyedRows:
    """Pair `rows`, in which no key (the first `keys` columns) occurs twice, with the rows of `trace` of the same keys.

    The columns of `trace` have the same keys first.
    """
    sequence = np.argsort(sort_keys, kind="stable")
    rows, sort_keys = rows.take(pa.array(sequence)).combine_chunks(), sort_keys[sequence]
    repeated = len(sort_keys) > 1 and bool((sort_keys[1:] == sort_keys[:-1]).any())
    before = find(trace, distinct(sort_keys) if repeated else sort_keys)
    found = sort_keys_of(before)
    before = before.drop_columns([SORT_KEY])
    nobody = before.slice(0, 0)
    at = np.searchsorted(sort_keys, found)
    places = np.full(len(sort_keys), -1, dtype=np.int64)
    places[at] = np.arange(len(found))
    one_to_one = not repeated and int((places >= 0).sum()) == len(found)
    if one_to_one and same_keys(rows.take(pa.array(at)), before, keys):
        beside = before.take(pa.array(places, mask=places < 0))
        return KeyedRows(_side_by_side(rows, beside, places >= 0), sort_keys, nobody, found)
    return _joined(sql, rows, sort_keys, before, found, keys)


def _side_by_side(rows: pa.Table, before: pa.Table, found: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    columns = [*rows.columns, *before.columns, pa.array(found)]
    names = [*rows.column_names, *(PREVIOUS + name for name in before.column_names), FOUND]
    return pa.table(columns, names=names)


def same_keys(rows: pa.Table, before: pa.Table, keys: int) -> bool:
    """Whether the keys of both tables are equal row by row; a type that Arrow cannot compare counts as different."""
    for place in range(keys):
        left, right = rows.column(place), before.column(place)
        if pa.types.is_nested(left.type):
            return False
        same = pc.equal(left, right)
        if same.null_count:
            same = pc.or_(pc.fill_null(same, False), pc.and_(left.is_null(), right.is_null()))
        if not pc.all(same, min_count=0).as_py():
            return False
    return True


def _joined(sql: Sql, rows: pa.Table, sort_keys: SortKeys, before: pa.Table, found: SortKeys, keys: int) -> KeyedRows:
    """The same by a join on the keys: different keys share a sort key, or Arrow cannot tell whether they do."""
    names = before.column_names
    wanted = rows.append_column("_at", pa.array(np.arange(rows.num_rows)))
    known = before.append_column("_at", pa.array(np.arange(before.num_rows)))
    on = " AND ".join(f"r.{rows.column_names[i]} IS NOT DISTINCT FROM b.{names[i]}" for i in range(keys)) or "true"
    matches = sql(f"SELECT r._at AS r, b._at AS b FROM r JOIN b ON {on}", {"r": wanted, "b": known})
    places = np.full(rows.num_rows, -1, dtype=np.int64)
    places[matches.column("r").to_numpy()] = matches.column("b").to_numpy()
    alone = np.ones(before.num_rows, dtype=np.bool_)
    alone[matches.column("b").to_numpy()] = False
    beside = before.take(pa.array(places, mask=places < 0))
    others = before.append_column(SORT_KEY, pa.array(found)).filter(pa.array(alone))
    return KeyedRows(_side_by_side(rows, beside, places >= 0), sort_keys, others, found)


def write(trace: Trace, pairs: KeyedRows, rows: pa.Table, sort_keys: SortKeys, timestamp: int = 0) -> None:
    """Put `rows` in place of what `pairs` found in `trace`."""
    if pairs.others.num_rows:
        names = trace.spec.schema.names
        rows = pa.concat_tables([rows.select(names), pairs.others.select(names)])
        sort_keys = np.concatenate([sort_keys, sort_keys_of(pairs.others)])
    trace.replace(rows, sort_keys, pairs.found, timestamp)


def restrict_to(pairs: KeyedRows, sort_keys: SortKeys) -> KeyedRows:
    """`pairs` as if only the rows of `sort_keys` had been looked for: what was found elsewhere stays as it is."""
    found = pairs.found[among(pairs.found, sort_keys)]
    others = pairs.others
    if others.num_rows:
        others = others.filter(pa.array(among(sort_keys_of(others), sort_keys)))
    return pairs._replace(found=found, others=others)
