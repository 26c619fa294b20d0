"""The matching rows of two tables: the one statement of every join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Positions
from operators.failures import reason_of
from operators.hashing import bucket_hash
from operators.names import column, columns
from operators.pieces import STEP, row_bytes, runs
from operators.sql import NOT_COMPUTABLE, Sql
from operators.sql_text import every, join, select, union_all
from operators.time import time_parameter

PAIRS = 1 << 20
"""Pairs that one statement finds, unless that is less than a few for each row: what is computed for each takes up to a
hundred bytes beside its rows."""

CANDIDATES = 4 << 20
"""Pairs with equal keys that one statement looks at where a condition over other columns leaves some of them out: each
statement reads the other side again."""

_FEW = 4
"""Pairs for each row of the inputs that are made at once, however many they are: that costs about what reading the rows
did."""

_WEIGHT_BYTES = 8
"""The weight of a pair, a BIGINT."""

_BINS = 1 << 20
"""Parts of the hash by which pairs are counted first: counts of eight bytes, 8 MiB."""


class Pairs(NamedTuple):
    """Pair i is row `left[i]` of one table and row `right[i]` of the other."""

    left: Positions
    right: Positions


def condition(left: Sequence[int], right: Sequence[int], null_safe: Sequence[bool], width: int) -> str:
    """Return the text that the keys are equal, over the columns of left, then right (the first `width` are left's).

    >>> condition(left=[0], right=[1], null_safe=[False], width=2)  # the second column of the right input is c3
    'c0 = c3'
    """
    equal = [
        f"{column(lk)} {'IS NOT DISTINCT FROM' if safe else '='} {column(width + rk)}"
        for lk, rk, safe in zip(left, right, null_safe, strict=True)
    ]
    return every(equal) or "true"


Parts = Sequence[tuple[pa.Table, pa.Table, int, int]]
"""Two tables each, and what to add to the numbers of their rows."""

NOTHING = Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
"""No pairs."""


class Matches(NamedTuple):
    """The pairs that match, and those of which that cannot be computed: `undecided.py` says what follows."""

    pairs: Pairs
    failed: Pairs
    reason: str = ""


def match(sql: Sql, on: str, parts: Parts, width: int, now: int) -> Pairs:
    """Return the pairs for which `on` is true, in several `parts`; `$now` in it is the time `now` (milliseconds)."""
    texts, tables = [], {}
    for i, (left, right, left_base, right_base) in enumerate(parts):
        if left.num_rows == 0 or right.num_rows == 0:
            continue
        tables[f"l{i}"] = _numbered(left, 0, left_base, "li")
        tables[f"r{i}"] = _numbered(right, width, right_base, "ri")
        texts.append(select(["li", "ri"], join(f"l{i}", f"r{i}", on)))
    if not texts:
        return NOTHING
    pairs = sql(union_all(texts), tables, time_parameter(on, now))
    return Pairs(pairs.column("li").to_numpy(), pairs.column("ri").to_numpy())


def match_where_computable(sql: Sql, on: str, residual: str | None, parts: Parts, width: int, now: int) -> Matches:
    """Return the pairs of `match` for which `residual`, a condition over any columns, is true as well.

    A pair for which it cannot be computed has failed.
    """
    if residual is None:
        return Matches(match(sql, on, parts, width, now), NOTHING)
    try:
        return Matches(match(sql, f"{on} AND ({residual})", parts, width, now), NOTHING)
    except NOT_COMPUTABLE as error:
        pairs = match(sql, f"{on} AND TRY(({residual}))", parts, width, now)
        failed = match(sql, f"{on} AND TRY(struct_pack(a := ({residual}))) IS NULL", parts, width, now)
        return Matches(pairs, failed, reason_of(error))


def match_in_pieces(
    sql: Sql,
    on: str,
    residual: str | None,
    parts: Parts,
    keys: tuple[Sequence[int], Sequence[int]],
    width: int,
    now: int,
) -> Iterator[Matches]:
    """Yield the answer of `match_where_computable` in pieces, of which none is of many more than PAIRS, or CANDIDATES.

    `keys` are the columns of left and right that `on` says are equal. The matches of a row of left are in one piece.
    """
    parts = [part for part in parts if part[0].num_rows and part[1].num_rows]
    rows = sum(left.num_rows + right.num_rows for left, right, _, _ in parts)
    most = max(PAIRS if residual is None else CANDIDATES, _FEW * rows)
    if sum(left.num_rows * right.num_rows for left, right, _, _ in parts) <= most:
        if parts:
            yield match_where_computable(sql, on, residual, parts, width, now)
        return
    counts = [_candidates(left, right, keys, most) for left, right, _, _ in parts]
    if sum(int(each.sum()) for each in counts) <= most:
        yield match_where_computable(sql, on, residual, parts, width, now)
        return
    for (left, right, left_base, right_base), count in zip(parts, counts, strict=True):
        for run in runs(count, most):
            piece = left.slice(run.start, run.stop - run.start), right, left_base + run.start, right_base
            yield match_where_computable(sql, on, residual, [piece], width, now)


def _candidates(left: pa.Table, right: pa.Table, keys: tuple[Sequence[int], Sequence[int]], most: int) -> Positions:
    """How many rows of `right` each row of `left` may match, by its key; an upper bound."""
    if not keys[0]:
        return np.full(left.num_rows, right.num_rows, dtype=np.int64)
    asked, known = bucket_hash(left, keys[0]), bucket_hash(right, keys[1])
    # By a part of the hash first, which needs no sorting: mostly that says already that the pairs are few.
    mask = np.uint64(_BINS - 1)
    bins = np.bincount((known & mask).astype(np.int64), minlength=_BINS)
    counts: Positions = bins[(asked & mask).astype(np.int64)]
    if int(counts.sum()) <= most:
        return counts
    different, times = np.unique(known, return_counts=True)
    at = np.minimum(np.searchsorted(different, asked), len(different) - 1)
    return np.where(different[at] == asked, times[at], 0)


def taken(left: pa.Table, right: pa.Table, pairs: Pairs) -> Iterator[tuple[slice, pa.Table, pa.Table]]:
    """Yield the rows of `pairs` beside each other, in runs of at most STEP bytes."""
    if not len(pairs.left):
        return
    found = list(_runs(left, right, pairs))
    if len(found) > 1:
        # To take rows out of several chunks puts these together, each time.
        left, right = left.combine_chunks(), right.combine_chunks()
    for run in found:
        yield run, left.take(pa.array(pairs.left[run])), right.take(pa.array(pairs.right[run]))


def _runs(left: pa.Table, right: pa.Table, pairs: Pairs) -> Iterator[slice]:
    # Small tables, few pairs: no row has to be looked at.
    if len(pairs.left) * (left.nbytes + right.nbytes) <= STEP:
        return iter((slice(0, len(pairs.left)),))
    sizes = row_bytes(left)[pairs.left] + row_bytes(right)[pairs.right]
    return runs(sizes + _WEIGHT_BYTES, STEP)


def _numbered(rows: pa.Table, first: int, base: int, name: str) -> pa.Table:
    """`rows` with columns c<first>, ... and the number of each row, counted from `base`."""
    numbers = pa.array(np.arange(base, base + rows.num_rows))
    return rows.rename_columns(columns(range(first, first + rows.num_columns))).append_column(name, numbers)


def holding(sql: Sql, residual: str, pairs: pa.Table, now: int) -> Matches:
    """Return the rows of `pairs` (columns c0, c1, ... of left, then right) for which `residual` is true, each its own
    pair."""
    statement, named = "SELECT COALESCE({0}, false) AS holds FROM pairs", {"pairs": pairs}
    parameter = time_parameter(residual, now)

    def those(condition: str) -> Pairs:
        places = np.flatnonzero(sql(statement.format(condition), named, parameter).column("holds").to_numpy())
        return Pairs(places, places)

    try:
        return Matches(those(f"({residual})"), NOTHING)
    except NOT_COMPUTABLE as error:
        failed = those(f"TRY(struct_pack(a := ({residual}))) IS NULL")
        return Matches(those(f"TRY(({residual}))"), failed, reason_of(error))
