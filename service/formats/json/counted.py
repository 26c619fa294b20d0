"""Records of which it is known, by counting, that each of their values was taken out of them.

Law: a value that DuckDB took out of a record has a key in it. Where a record has as many keys with a value as values
were taken out, each of them is one of the wanted names, stands once, and was of the right kind; whatever is NULL is
null or missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from service.formats.json.buffers import Flags
from service.formats.json.keys import UNKNOWN, Keys, last_bytes


class Presence(NamedTuple):
    """In which records a name has a value; None if in all."""

    name: str
    there: Flags | None


def uncounted(keys: Keys, found: Sequence[Presence]) -> Flags:
    """Return the records with more keys than values, and those in which a name with a value may be null as well."""
    count = np.full(len(keys.valued), sum(each.there is None for each in found))
    for each in found:
        if each.there is not None:
            count += each.there
    unequal: Flags = keys.valued != count
    return unequal | _null_as_well(keys, found)


def _null_as_well(keys: Keys, found: Sequence[Presence]) -> Flags:
    rows, words = keys.nulls()
    repeated = np.zeros(len(keys.valued), dtype=bool)
    if len(rows) == 0:
        return repeated
    repeated[rows[words == UNKNOWN]] = True
    names = [each.name for each in found]
    if not "".join(names).isascii():
        # Such a name may be written with escapes, and is then not known by its last bytes.
        repeated[rows] = True
        return repeated
    known = np.array(list(map(last_bytes, names)), dtype=np.uint64)
    order = np.argsort(known)
    there = np.array([np.ones(len(repeated), dtype=bool) if each.there is None else each.there for each in found])
    place = np.searchsorted(known[order], words)
    # Several names may have the same last bytes.
    while len(rows):
        same = place < len(order)
        same[same] = known[order[place[same]]] == words[same]
        rows, words, place = rows[same], words[same], place[same]
        repeated[rows[there[order[place], rows]]] = True
        place = place + 1
    return repeated
