"""Numbers of seven bits a byte, as Avro and Protocol Buffers have them: read and written for whole blocks at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]
Octets = np.ndarray[Any, np.dtype[np.uint8]]

PADDING = 64
"""Zero bytes to keep behind the bytes of a block: more than a number may be read over its end."""

LONGEST = 10
"""Bytes of the longest number, of 64 bits."""

_MORE = np.uint64(0x8080808080808080)
_SEVENS = ((0x007F007F007F007F, 0x7F007F007F007F00, 1), (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2))
_LOW, _HIGH = np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)
"""Masks of eight bytes at once: the bits that say that a number goes on, and the steps by which seven bits of each byte
move together."""


class Numbers(NamedTuple):
    """Numbers as they stand, without a sign, and the bytes of each. `long` are the positions of those of more than
    eight bytes, `tenth` the tenth byte of each of these, 0 where it has none; with 128 or more in it, the number has no
    end."""

    values: Words
    sizes: Ints
    long: Ints
    tenth: Words


def words_of(data: Octets) -> Words:
    """Return the eight bytes from each place of `data` on, as little-endian numbers, without a copy."""
    return np.ndarray((len(data) - 7,), "<u8", buffer=data.data, strides=(1,))


def numbers(words: Words, at: Ints) -> Numbers:
    """Return the number that begins at each place."""
    word = words[at]
    last = ~word & _MORE
    last &= np.uint64(0) - last  # the lowest bit that ends a number; none in a number of nine or ten bytes
    value = word & ((last << np.uint64(1)) - np.uint64(1)) & ~_MORE
    for low, high, shift in _SEVENS:
        value = (value & np.uint64(low)) | ((value & np.uint64(high)) >> np.uint64(shift))
    value = (value & _LOW) | ((value & _HIGH) >> np.uint64(4))
    size = ((np.bitwise_count(last - np.uint64(1)).astype(np.int64) + 1) >> 3).astype(np.int64)
    long = np.flatnonzero(last == 0)
    tenth = np.zeros(len(long), dtype=np.uint64)
    if len(long):
        rest = words[at[long] + 8]
        ninth = rest & np.uint64(0xFF)
        ten = ninth >= 0x80
        tenth[ten] = (rest[ten] >> np.uint64(8)) & np.uint64(0xFF)
        value[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        value[long] |= tenth << np.uint64(63)
        size[long] = np.where(ten, LONGEST, LONGEST - 1)
    return Numbers(value, size, long, tenth)


def zigzag(values: Words) -> Ints:
    """Return numbers with a sign, out of those whose lowest bit it is.

    >>> zigzag(np.array([0, 1, 2, 3], np.uint64)).tolist()
    [0, -1, 1, -2]
    """
    return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)
