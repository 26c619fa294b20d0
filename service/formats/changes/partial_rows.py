"""Rows before an update, of which a record names only the columns that the update has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.changes.decoder import Flags


class Updated(NamedTuple):
    """The rows of updates: `data` after them, and `old` with what they have changed; which rows are updates.

    `names_in_old` says, of the change at a position, which columns `old` names: that a column was NULL before can only
    be seen in the text of its record.
    """

    data: pa.StructArray
    old: pa.StructArray
    updates: Flags
    names_in_old: Callable[[int], frozenset[str]]


def overlaid(rows: Updated, names: Sequence[str]) -> pa.StructArray:
    """Return the rows before: a column as `old` has it where it is named there, else as `data` has it."""
    changed = rows.updates & ~rows.old.is_null().to_numpy(zero_copy_only=False)
    if not changed.any():
        return rows.data
    columns = []
    for position, name in enumerate(names):
        new, was = pc.struct_field(rows.data, [position]), pc.struct_field(rows.old, [position])
        absent = was.is_null().to_numpy(zero_copy_only=False)
        takes_old = changed & ~absent
        for index in map(int, np.flatnonzero(changed & absent & ~new.is_null().to_numpy(zero_copy_only=False))):
            takes_old[index] = name in rows.names_in_old(index)
        columns.append(_chosen(takes_old, was, new))
    return pa.StructArray.from_arrays(columns, fields=list(rows.data.type), mask=rows.data.is_null())


def _chosen(first: Flags, one: pa.Array, other: pa.Array) -> pa.Array:
    """The values of `one` where `first` says so, else of `other`: by position, since types may be nested."""
    places = np.where(first, np.arange(len(one)), len(one) + np.arange(len(other)))
    return pa.concat_arrays([one, other]).take(pa.array(places))


def names_in(record: bytes | None, member: str, element: int = 0) -> frozenset[str]:
    """Return the names of the object `member` of a record; of an array of objects, those of one `element`."""
    inside = json.loads(record or b"{}").get(member)
    if isinstance(inside, list):
        inside = inside[element] if element < len(inside) else None
    return frozenset(inside) if isinstance(inside, dict) else frozenset()
