"""Records that DuckDB reads as JSON objects and the standard does not (RFC 8259), or that are no objects.

DuckDB allows a comma before the brace or bracket that closes an object or an array. Which records are bad must not
depend on the way in which a block is read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.json.buffers import Bytes, Edges, Flags, raw, words

_SPACE = " \t\n\r"
"""White space of JSON."""

_COMMA, _BLANK = ord(","), ord(" ")


def malformed(block: pa.Array) -> Flags:
    """Return records that may be no JSON objects, among those that DuckDB reads: they are to be read exactly."""
    if _compact(block):
        return np.zeros(len(block), dtype=bool)
    return _no_object(block) | _trailing_comma(block)


def _compact(block: pa.Array) -> bool:
    """Whether all records begin and end as objects do, and none has a comma or white space before a brace or bracket
    that closes. False where that is not plain: the answer of one pass over the bytes, as most producers write them.

    A comma and a space have none of the bits of `_NEITHER`; what ends a value has one of them. So the bits that are
    left over of a byte and the one before are none where something is closed oddly. A line feed has one of them, too:
    a block with white space other than spaces is not plain.
    """
    data, edges = raw(block)
    if not _outermost(data, edges):
        return False
    begin, end = int(edges[0]), int(edges[-1])
    left, before = np.empty(_LONG_PIECE, np.uint8), np.empty(_LONG_PIECE, np.uint8)
    starts = np.arange(begin + 1, end, _LONG_PIECE)
    inner, pairs = edges[1:-1], words(data, 2)
    cuts = np.searchsorted(inner, np.append(starts, end))
    for place, first, last in zip(starts, cuts[:-1], cuts[1:], strict=True):
        here = data[place : min(place + _LONG_PIECE, end)]
        n = len(here)
        np.bitwise_or(here, _BRACKET_TO_BRACE, out=left[:n])
        np.bitwise_xor(left[:n], ord("}"), out=left[:n])
        np.bitwise_and(data[place - 1 : place - 1 + n], _NEITHER, out=before[:n])
        np.bitwise_or(left[:n], before[:n], out=left[:n])
        if not left[:n].min() or here.min() < _BLANK or (pairs[inner[first:last] - 1] != _END_AND_BEGIN).any():
            return False
    return True


def _no_object(block: pa.Array) -> Flags:
    """Records that do not begin and end as a JSON object does, white space aside."""
    data, edges = raw(block)
    if _all_objects(data, edges):
        return np.zeros(len(block), dtype=bool)
    data, edges = raw(pc.ascii_trim(block, characters=_SPACE))
    if len(data) < 2:
        return np.ones(len(block), dtype=bool)
    first, last = edges[:-1], edges[1:] - 1
    opened: Flags = data[np.minimum(first, len(data) - 1)] == ord("{")
    closed: Flags = data[last] == ord("}")
    return np.logical_not(opened & closed & (last > first))


def _all_objects(data: Bytes, edges: Edges) -> bool:
    """Whether all records begin and end as objects do: one look at the two bytes around each edge between two. False
    where that is not plain."""
    return _outermost(data, edges) and not (words(data, 2)[edges[1:-1] - 1] != _END_AND_BEGIN).any()


def _outermost(data: Bytes, edges: Edges) -> bool:
    """Whether the first record begins and the last one ends as an object does, and none is shorter than one."""
    if len(edges) < 2 or np.diff(edges).min() < 2:
        return False
    return bool(data[edges[0]] == ord("{") and data[edges[-1] - 1] == ord("}"))


def _trailing_comma(block: pa.Array) -> Flags:
    """Records with a comma before a brace or bracket that closes; at times others, which have that in a text."""
    suspect = np.zeros(len(block), dtype=bool)
    data, edges = raw(block)
    data = data[edges[0] : edges[-1]]
    if not _closed_oddly(data):
        return suspect
    for closing in (b"}", b"]"):
        # Most blocks have no array: one byte is found far faster than by comparing all.
        if closing == b"]" and not contains(block, closing):
            continue
        places = np.flatnonzero(data == ord(closing))
        before = data[places - 1]
        near = places[(before == _COMMA) | (before <= _BLANK)] + edges[0]
        if len(near):
            rows = np.unique(np.searchsorted(edges, near, side="right") - 1)
            found = pc.match_substring_regex(block.take(pa.array(rows)), rf",[{_SPACE}]*[}}\]]")
            suspect[rows] |= found.to_numpy(zero_copy_only=False)
    return suspect


def _closed_oddly(data: Bytes) -> bool:
    """Whether a brace or bracket that closes has something before it that is not the end of a value.

    All values end with a quotation mark, or with a letter, a digit, a brace or a bracket: those are behind the comma
    and white space.
    """
    closes, odd = np.empty(_PIECE, bool), np.empty(_PIECE, bool)
    byte = np.empty(_PIECE, np.uint8)
    for place in range(1, len(data), _PIECE):
        here = data[place : place + _PIECE]
        before, n = data[place - 1 : place - 1 + len(here)], len(here)
        np.bitwise_or(here, _BRACKET_TO_BRACE, out=byte[:n])
        np.equal(byte[:n], ord("}"), out=closes[:n])
        np.less(before, ord("0"), out=odd[:n])
        np.logical_and(closes[:n], odd[:n], out=closes[:n])
        np.not_equal(before, ord('"'), out=odd[:n])
        np.logical_and(closes[:n], odd[:n], out=closes[:n])
        if closes[:n].any():
            return True
    return False


_BRACKET_TO_BRACE = ord("}") ^ ord("]")
"""The bit in which a closing brace differs from a closing bracket, and from no other byte that is none of them."""

_NEITHER = 0xFF ^ (ord(",") | ord(" "))
"""The bits that neither a comma nor a space has: what ends a value, an object or an array has one of them."""

_END_AND_BEGIN = ord("}") | ord("{") << 8
"""The end of an object and the begin of the next, as the number that two bytes are."""

_LONG_PIECE = 1 << 20
"""Bytes that are looked at together in a pass that seldom ends early: numpy's calls cost more with shorter ones."""

_PIECE = 1 << 18
"""Bytes that are searched at a time: they stay in the cache of a core."""


def contains(block: pa.Array, byte: bytes) -> bool:
    """Return whether a byte is anywhere in the texts."""
    data, edges = raw(block)
    places = range(edges[0], edges[-1], _PIECE)
    return any(byte in data[place : min(place + _PIECE, edges[-1])].tobytes() for place in places)
