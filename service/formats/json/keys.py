"""The keys of all objects of a block, found at once by the colons behind them.

To search the records for each name costs a look into each for each name: where there are hundreds, that is all there is
to do. The colons are found in one pass, and tell how many values a record has, which of them are null, and which may be
true or false. A key is known by its last bytes, so that some names are taken for each other.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from service.formats.json.buffers import Bytes, Flags, Rows, raw, words

Words = np.ndarray[Any, np.dtype[np.uint64]]

_WIDTH = 8
"""Bytes by which a key is known, the last of which is a quotation mark."""

_PIECE = 1 << 18
"""Bytes that are searched at a time: they stay in the cache of a core."""

_IN_A_NUMBER = np.zeros(256, dtype=bool)
_IN_A_NUMBER[[ord(c) for c in "0123456789.eE"]] = True

_TRUE_OR_FALSE = 0x12
"""The bits in which t and f differ."""


class Keys:
    """The keys of a block of JSON, in order. Some that are none, within texts, may be among them; none is missing."""

    def __init__(self, block: pa.Array) -> None:
        self._data, edges = raw(block)
        self._colons = _colons(self._data, int(edges[0]), int(edges[-1]))
        self._first = np.searchsorted(self._colons, edges)
        # One blank before the value is usual; with more of them it is not known which it is.
        values = self._colons + 1
        blank = self._data[values] <= ord(" ")
        self._values = values + blank if blank.any() else values
        self._letters = self._data[self._values]
        """The first letter of each value."""
        may_be = np.flatnonzero(self._letters == ord("n"))
        last = max(0, len(self._data) - len("null"))
        null = words(self._data, 4)[np.minimum(self._values[may_be], last)] == int.from_bytes(b"null", "little")
        self._nulls: Rows = may_be[null]

    @cached_property
    def valued(self) -> Rows:
        """The number of keys of each record whose value is not null, as far as that is known."""
        nulls = np.searchsorted(self._nulls, self._first)
        return np.diff(self._first) - np.diff(nulls)

    def nulls(self) -> tuple[Rows, Words]:
        """Return the records and the last bytes of the keys whose value is null."""
        return self._records(self._nulls), self._last_bytes(self._colons[self._nulls])

    def negative_zeros(self) -> Flags:
        """Return the records in which the value of a key may be the number -0, or something like it."""
        minus = np.flatnonzero(self._letters == ord("-"))
        digit = self._values[minus] + 1
        behind = self._data[np.minimum(digit + 1, len(self._data) - 1)]
        zero = (self._data[digit] == ord("0")) & ~_IN_A_NUMBER[behind]
        suspect = np.zeros(len(self._first) - 1, dtype=bool)
        suspect[self._records(minus[zero])] = True
        # Behind more than one blank it is not seen.
        suspect[self._records(np.flatnonzero(self._letters <= ord(" ")))] = True
        return suspect

    def may_be_boolean(self, name: str) -> bool:
        """Return whether the value of the key `name` may be true or false in one of the records."""
        known = self._booleans
        # A name beyond ASCII may be written with escapes.
        return UNKNOWN in known or not name.isascii() or last_bytes(name) in known

    @cached_property
    def _booleans(self) -> frozenset[int]:
        """The last bytes of the keys whose value may be true or false."""
        true_or_false = (self._letters | _TRUE_OR_FALSE) == ord("t") | _TRUE_OR_FALSE
        colons = self._colons[true_or_false | (self._letters <= ord(" "))]
        return frozenset(np.unique(self._last_bytes(colons)).tolist())

    def _records(self, keys: Rows) -> Rows:
        """The records of some keys."""
        return np.searchsorted(self._first, keys, side="right") - 1

    def _last_bytes(self, colons: Rows) -> Words:
        """The last bytes of the keys before some colons."""
        early = int(np.searchsorted(colons, _WIDTH))
        beginning = self._data[:_WIDTH].tobytes()
        first = [int.from_bytes(beginning[:colon].rjust(_WIDTH, b"\0"), "little") for colon in colons[:early].tolist()]
        late = words(self._data, _WIDTH)[colons[early:] - _WIDTH]
        return _of_the_key(np.concatenate([np.array(first, dtype=np.uint64), late]))


UNKNOWN = 0
"""Stands for the last bytes of a key behind which are blanks."""


def last_bytes(name: str) -> int:
    """Return the last bytes of a name as a key, if it is written without escapes."""
    spelled = json.dumps(name, ensure_ascii=False).encode()[-_WIDTH:]
    return int.from_bytes(spelled[max(0, spelled.rfind(b'"', 0, -1)) :].rjust(_WIDTH, b"\0"), "little")


def _of_the_key(last: Words) -> Words:
    """Without the bytes before the quotation mark that begins a short key."""
    quote, unsure = np.uint64(ord('"')), np.ones(len(last), dtype=bool)
    last = np.where(last >> np.uint64(8 * (_WIDTH - 1)) == quote, last, np.uint64(UNKNOWN))
    for place in range(_WIDTH - 2, -1, -1):
        shift = np.uint64(8 * place)
        begins = unsure & (last >> shift & np.uint64(0xFF) == quote)
        if begins.any():
            last = np.where(begins, last >> shift << shift, last)
            unsure &= ~begins
    return last


def _colons(data: Bytes, first: int, last: int) -> Rows:
    """The places of colons behind a quotation mark, a blank, or one other sign, which costs least to find."""
    found = [np.zeros(0, dtype=np.int64)]
    colon, behind = np.empty(_PIECE, bool), np.empty(_PIECE, bool)
    for place in range(first + 1, last, _PIECE):
        here = data[place : min(place + _PIECE, last)]
        count = len(here)
        np.equal(here, ord(":"), out=colon[:count])
        np.less_equal(data[place - 1 : place - 1 + count], ord('"'), out=behind[:count])
        np.logical_and(colon[:count], behind[:count], out=colon[:count])
        found.append(np.flatnonzero(colon[:count]) + place)
    return np.concatenate(found)
