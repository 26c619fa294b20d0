"""The encodings that formats of changes share: the kinds of rows, and their form around the text of a row.

Formats without a form of their own are here: `plain`, which only adds rows, and `upsert`. A format that has one writes
it where it reads it, in the module of its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.changes.change_pairs import NONE, ChangePairs
from service.formats.contract import Positions

INSERT, BEFORE, AFTER, DELETE = range(4)
"""Row kinds: +I, -U, +U, -D."""

KINDS = ("+I", "-U", "+U", "-D")


class EncodedChanges(NamedTuple):
    """Records in order: the value (NULL for a tombstone), the position of the row that key and metadata are taken from,
    the row kind."""

    values: pa.Array
    rows: Positions
    kinds: np.ndarray[Any, np.dtype[np.int64]]


ChangeEncoding = Callable[[pa.Array, ChangePairs], EncodedChanges]
"""Makes records from the JSON text of each row of a block, and the changes among them."""


def plain(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
    """Return rows as they are. Raises ValueError for any change but an insert, for which the format has no sign.

    >>> print(*plain(pa.array(['{"n":1}']), ChangePairs(np.array([-1]), np.array([0]))).values)
    {"n":1}
    """
    if (pairs.after == NONE).any():
        raise ValueError("an insert-only format was given a retraction")
    return EncodedChanges(texts_at(texts, pairs.after), pairs.after, np.full(len(pairs.after), INSERT))


def upsert(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
    """Return the row after the change, or nothing.

    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*upsert(texts, pairs).values, sep="\\n")
    {"n":1}
    {"n":2}
    None
    """
    gone = pairs.after == NONE
    return EncodedChanges(texts_at(texts, pairs.after), np.where(gone, pairs.before, pairs.after), kinds_of(pairs))


def with_tombstones(written: EncodedChanges) -> EncodedChanges:
    """Return the records with one without a value behind each delete.

    >>> deleted = upsert(pa.array(['{"n":1}']), ChangePairs(np.array([0]), np.array([-1])))
    >>> len(deleted.values), len(with_tombstones(deleted).values)
    (1, 2)
    """
    copies = np.where(written.kinds == DELETE, 2, 1)
    source = np.repeat(np.arange(len(copies)), copies)
    tombstone = np.zeros(len(source), dtype=bool)
    tombstone[1:] = source[1:] == source[:-1]
    values = written.values.take(pa.array(source, mask=tombstone))
    return EncodedChanges(values, written.rows[source], written.kinds[source])


def kinds_of(pairs: ChangePairs) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the row kind of each change: an update has that of the row after it."""
    return np.where(pairs.before == NONE, INSERT, np.where(pairs.after == NONE, DELETE, AFTER))


def row_by_row(pairs: ChangePairs) -> tuple[Positions, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return each retracted or inserted row as a record of its own, with its kind."""
    kinds = kinds_of(pairs)
    if not (kinds == AFTER).any():
        return np.where(pairs.after == NONE, pairs.before, pairs.after), kinds
    both = np.stack([pairs.before, pairs.after], axis=1)
    each = np.stack([np.where(kinds == AFTER, BEFORE, DELETE), np.where(kinds == AFTER, AFTER, INSERT)], axis=1)
    there = both != NONE
    return both[there], each[there]


def texts_at(texts: pa.Array, positions: Positions) -> pa.Array:
    """Return the texts at these positions, NULL at NONE."""
    if len(positions) == len(texts) and (positions == np.arange(len(texts))).all():
        return texts
    return texts.take(pa.array(positions, mask=positions == NONE))


def joined(*parts: pa.Array | str) -> pa.Array:
    """Return the concatenated texts of `parts`, row by row; NULL if one of them is."""
    return pc.binary_join_element_wise(*parts, "")
