"""Sessions: stretches of rows of one key in which no two neighbours are further apart than the gap.

A session is named by the time of its first row and known by that of its last, both in ms. It ends a gap after its last
row, and a row exactly at the end still belongs to it, so sessions that touch are one. Rows come as *pieces*: some rows
of one key within a gap of each other, which can only ever be in one session together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Times
from operators.columns import numbered
from operators.hashing import bucket_hash
from operators.names import AT, END, FIRST, LAST, START
from operators.sql import Sql
from operators.sql_text import inner, named, over, select
from operators.state.tables.keyed import same_keys

_SAFE = 2**62
"""Below this, times moved apart by key do not overflow."""


class Extents(NamedTuple):
    """For each piece the first and the last time (ms) of the session that it is in."""

    firsts: Times
    lasts: Times


def extents(pieces: pa.Table, keys: Sequence[str], gap: int, sql: Sql) -> Extents:
    """Find the sessions of `pieces`, which have the columns `keys`, then START and END.

    >>> pieces = pa.table({START: [1, 8, 30], END: [3, 8, 30]})
    >>> found = extents(pieces, keys=[], gap=10, sql=Sql())
    >>> list(zip(found.firsts.tolist(), found.lasts.tolist()))  # the second piece begins within a gap of the first
    [(1, 8), (1, 8), (30, 30)]
    """
    firsts, lasts = pieces.column(START).to_numpy(), pieces.column(END).to_numpy()
    if pieces.num_rows < 2:
        return Extents(firsts, lasts)
    hashes = bucket_hash(pieces, range(len(keys)))
    at = np.lexsort((firsts, hashes))
    hashes, starts, ends = hashes[at], firsts[at], lasts[at]
    same = hashes[1:] == hashes[:-1]
    neighbours = pieces.select(keys)
    left, right = (neighbours.take(pa.array(side[same])) for side in (at[:-1], at[1:]))
    groups = np.concatenate([[0], np.cumsum(~same)])
    width = int(ends.max() - ends.min()) + 1
    if not same_keys(left, right, len(keys)) or width * (int(groups[-1]) + 1) >= _SAFE:
        return _by_statement(pieces, keys, gap, sql)
    # The end reached so far within each key: keys are moved apart, so that one running maximum serves all.
    apart = groups * width
    reached = np.maximum.accumulate(ends - ends.min() + apart) - apart + ends.min()
    begins = np.concatenate([[True], ~same | (starts[1:] - reached[:-1] > gap)])
    heads = np.flatnonzero(begins)
    session = np.cumsum(begins) - 1
    found = Extents(np.empty_like(firsts), np.empty_like(lasts))
    found.firsts[at] = starts[heads][session]
    found.lasts[at] = np.maximum.reduceat(ends, heads)[session]
    return found


def _by_statement(pieces: pa.Table, keys: Sequence[str], gap: int, sql: Sql) -> Extents:
    """The same where keys share a hash, or where Arrow cannot tell whether they do: slower, and right for all."""
    key, order = ["true", *keys], [START, AT]
    before = over(key, order, "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    begins = f"CASE WHEN {START} - MAX({END}) {before} <= {gap} THEN NULL ELSE {START} END"
    first = f"MAX(begins) {over(key, order, 'ROWS UNBOUNDED PRECEDING')}"
    last = f"MAX({END}) {over([*key, FIRST])}"
    in_sessions = inner(select(["*", named(first, FIRST)], inner(select(["*", named(begins, "begins")], "pieces"))))
    statement = select([FIRST, named(last, LAST)], in_sessions, order_by=[AT])
    found = sql(statement, {"pieces": numbered(pieces.select([*keys, START, END]))})
    return Extents(found.column(FIRST).to_numpy(), found.column(LAST).to_numpy())
