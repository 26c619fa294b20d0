"""Bring together what a batch says of some keys and what the state knows of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from operators.names import AT, SORT_KEY
from operators.sql import Sql
from operators.sql_text import join, named, of, same, select
from operators.state.block import SortKeys, among, distinct
from operators.state.lookup import find, sort_keys_of
from operators.state.tables.keyed import KeyedRows, same_keys, side_by_side
from operators.state.trace import Trace

__all__ = ["KeyedRows", "read_keyed", "restrict_to", "same_keys", "write"]


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
        return KeyedRows(side_by_side(rows, beside, places >= 0), sort_keys, found, nobody)
    return _joined(sql, rows, sort_keys, before, found, keys)


def _joined(sql: Sql, rows: pa.Table, sort_keys: SortKeys, before: pa.Table, found: SortKeys, keys: int) -> KeyedRows:
    """The same by a join on the keys: different keys share a sort key, or Arrow cannot tell whether they do."""
    wanted = rows.append_column(AT, pa.array(np.arange(rows.num_rows)))
    known = before.append_column(AT, pa.array(np.arange(before.num_rows)))
    on = same(of("r", rows.column_names[:keys]), of("b", before.column_names[:keys]))
    statement = select([named(f"r.{AT}", "r"), named(f"b.{AT}", "b")], join("r", "b", on))
    matches = sql(statement, {"r": wanted, "b": known})
    places = np.full(rows.num_rows, -1, dtype=np.int64)
    places[matches.column("r").to_numpy()] = matches.column("b").to_numpy()
    alone = np.ones(before.num_rows, dtype=np.bool_)
    alone[matches.column("b").to_numpy()] = False
    beside = before.take(pa.array(places, mask=places < 0))
    others = before.append_column(SORT_KEY, pa.array(found)).filter(pa.array(alone))
    return KeyedRows(side_by_side(rows, beside, places >= 0), sort_keys, found, others)


def write(trace: Trace, pairs: KeyedRows, rows: pa.Table, sort_keys: SortKeys, timestamp: int = 0) -> None:
    """Put `rows` in place of what `pairs` found in `trace`."""
    if pairs.others.num_rows:
        names = trace.spec.schema.names
        rows = pa.concat_tables([rows.select(names), pairs.others.select(names)])
        sort_keys = np.concatenate([sort_keys, sort_keys_of(pairs.others)])
    trace.replace(rows, sort_keys, pairs.found, timestamp)


def restrict_to(pairs: KeyedRows, sort_keys: SortKeys) -> KeyedRows:
    """Return `pairs` as if only the rows of `sort_keys` had been looked for: what was found elsewhere stays as it
    is."""
    found = pairs.found[among(pairs.found, sort_keys)]
    others = pairs.others
    if others.num_rows:
        others = others.filter(pa.array(among(sort_keys_of(others), sort_keys)))
    return pairs._replace(found=found, others=others)
