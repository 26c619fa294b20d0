"""Records with a number that DuckDB does not take out of them as it is written: digits are lost, or a sign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.json.buffers import Bytes, Flags, Rows, raw
from service.plan.types import Array, DataType, Decimal, Map, Row, Simple

_BEFORE = r'(?:"\s*:|[\[,])\s*'
"""What stands before a value."""
_LONG_NUMBER = _BEFORE + "-?(?:[0-9]{8,}\\.[0-9]|[0-9]+\\.[0-9]{8}|[0-9]{16,}[eE]-)"
_NEGATIVE_ZERO = _BEFORE + r"-0\s*[,}\]]"
_DIGITS = np.zeros(256, dtype=bool)
_DIGITS[ord("0") : ord("9") + 1] = True
_ENDS = np.zeros(256, dtype=bool)
"""The bytes that may stand behind a number."""
_ENDS[[ord(c) for c in ",}] \t\r\n"]] = True

_PIECE = 1 << 18
"""Bytes that are searched at a time: they stay in the cache of a core."""


def has_decimal(type_: DataType) -> bool:
    """Return whether a value of `type_` holds a DECIMAL."""
    return _has(type_, lambda inner: isinstance(inner, Decimal))


def has_float(type_: DataType) -> bool:
    """Return whether a value of `type_` holds a FLOAT or DOUBLE."""
    return _has(type_, lambda inner: inner in (Simple("FLOAT"), Simple("DOUBLE")))


def _has(type_: DataType, wanted: Callable[[DataType], bool]) -> bool:
    match type_:
        case Array(inner) | Map(_, inner):
            return _has(inner, wanted)
        case Row(_, types):
            return any(_has(each, wanted) for each in types)
        case _:
            return wanted(type_)


def long_numbers(block: pa.Array) -> Flags:
    """Return records with a number of 8 digits before or after its point, or of 16 before an exponent below zero.

    DuckDB takes it as a double, which keeps 15.
    """
    data, edges = raw(block)
    points = np.flatnonzero(data[edges[0] : edges[-1]] == ord(".")) + edges[0]
    # Three before a point there is a colon in a time of day.
    before = [_DIGITS[data[np.maximum(points - far, 0)]] for far in (8, 3)]
    after = [_DIGITS[data[np.minimum(points + far, len(data) - 1)]] for far in (8, 3)]
    near = [points[(before[0] & before[1]) | (after[0] & after[1])]]
    for sign in b"eE":
        signs = _pairs(block, sign, ord("-"))
        near.append(signs[_DIGITS[data[np.maximum(signs - 1, 0)]] & _DIGITS[data[np.maximum(signs - 16, 0)]]])
    return _matching(block, np.concatenate(near), _LONG_NUMBER)


def negative_zeros(block: pa.Array) -> Flags:
    """Return records with the number -0, which DuckDB takes as a whole number: those have one zero."""
    data, _ = raw(block)
    signs = _pairs(block, ord("-"), ord("0"))
    return _matching(block, signs[_ENDS[data[np.minimum(signs + 2, len(data) - 1)]]], _NEGATIVE_ZERO)


def has_negative_zero(texts: pa.Array) -> Flags:
    """Return, for few records, whether each has the number -0."""
    found: Flags = pc.match_substring_regex(texts, _NEGATIVE_ZERO).to_numpy(zero_copy_only=False)
    return found


def _pairs(block: pa.Array, first: int, second: int) -> Rows:
    """The places of two bytes in a row."""
    data, edges = raw(block)
    found = [np.zeros(0, dtype=np.int64)]
    left, right = np.empty(_PIECE, bool), np.empty(_PIECE, bool)
    for place in range(edges[0], edges[-1] - 1, _PIECE):
        piece: Bytes = data[place : min(place + _PIECE + 1, edges[-1])]
        count = len(piece) - 1
        np.equal(piece[:-1], first, out=left[:count])
        np.equal(piece[1:], second, out=right[:count])
        np.logical_and(left[:count], right[:count], out=left[:count])
        if left[:count].any():
            found.append(np.flatnonzero(left[:count]) + place)
    return np.concatenate(found)


def _matching(block: pa.Array, places: Rows, pattern: str) -> Flags:
    """The records in which some of these places are, if they match `pattern`."""
    suspect = np.zeros(len(block), dtype=bool)
    if len(places):
        _, edges = raw(block)
        rows = np.unique(np.searchsorted(edges, places, side="right") - 1)
        suspect[rows] = pc.match_substring_regex(block.take(pa.array(rows)), pattern).to_numpy(zero_copy_only=False)
    return suspect
