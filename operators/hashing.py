"""A stable hash of rows, for choosing slots and for sorting state by key.

Equal values hash equally: NULLs are equal to each other, -0.0 to 0.0, every NaN to every NaN. It is computed with numpy
from the Arrow buffers and depends on nothing but the values, so it survives every upgrade: DuckDB does not promise
that of its own `hash()`. The words of a value are folded one by one through the finalizer of SplitMix64; a long text or
byte string is one word, which BLAKE2b makes of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

_SEED = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x7C0FFEE15BADCAFE)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_ALL_BYTES = np.uint64(0xFFFFFFFFFFFFFFFF)
_NAN = np.array([np.nan]).view(np.uint64)[0]


def _mixed(words: Hashes) -> Hashes:
    """The finalizer of SplitMix64, in place."""
    words ^= words >> np.uint64(30)
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words


def bucket_hash(table: pa.Table, columns: Sequence[int]) -> Hashes:
    """Return one uint64 a row of `table`, over the columns at the positions `columns`; without columns all rows
    agree."""
    hashes = np.full(table.num_rows, _SEED, dtype=np.uint64)
    if table.num_rows == 0:
        return hashes
    for position in columns:
        column = table.column(position)
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        hashes = _fold(hashes, array)
    return hashes


def _fold(hashes: Hashes, array: pa.Array) -> Hashes:
    """`hashes` with the values of `array` folded in."""
    if len(array) == 0:
        return hashes
    folded = _fold_valid(hashes, array)
    if array.null_count:
        null = array.is_null().to_numpy(zero_copy_only=False)
        folded[null] = _mixed(hashes[null] * _FIRST + _NULL)
    return folded


def _fold_valid(hashes: Hashes, array: pa.Array) -> Hashes:
    type_ = array.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return _fold_bytes(hashes, array)
    if pa.types.is_decimal(type_):
        words = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
        return _fold_words(_fold_words(hashes, words[0::2]), words[1::2])
    if pa.types.is_struct(type_):
        hashes = hashes.copy()
        for field in array.flatten():
            hashes = _fold(hashes, field)
        return hashes
    if pa.types.is_list(type_):
        return _fold_lists(hashes, array.offsets, array.values)
    if pa.types.is_map(type_):
        return _fold_lists(
            hashes, array.offsets, pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        )
    return _fold_words(hashes, _words(array))


def _fold_words(hashes: Hashes, words: Hashes) -> Hashes:
    folded: Hashes = hashes * _FIRST
    folded += words
    return _mixed(folded)


def _words(array: pa.Array) -> Hashes:
    """Each value of a fixed-width column as one word; whatever stands in place of a NULL."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        bits: Hashes = pc.fill_null(array, False).cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64)
        return bits
    if pa.types.is_floating(type_):
        width: npt.DTypeLike = np.float32 if type_ == pa.float32() else np.float64
        with np.errstate(invalid="ignore"):  # a signaling NaN may be stored in place of a NULL
            floats = _values(array, width).astype(np.float64) + 0.0
        words = floats.view(np.uint64)
        words[np.isnan(floats)] = _NAN
        return words
    sizes = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
    if pa.types.is_interval(type_):
        raise TypeError("an interval cannot be part of a key")
    return _values(array, sizes[type_.bit_width]).astype(np.int64, copy=False).view(np.uint64)


def _values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


LONG = 256
"""The bytes from which a text is hashed as a whole: each eight bytes of the longest text cost a pass over the column,
which pays only while most texts are that long."""


def _fold_bytes(hashes: Hashes, array: pa.Array) -> Hashes:
    """Fold in the length and then each eight bytes of a string, the last ones padded with zeros.

    A long string is folded in as one word.
    """
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - first + 8, np.uint8)
    if end > first:
        data[:-8] = np.frombuffer(data_buffer, np.uint8)[first:end]
    windows: Hashes = np.ndarray((end - first + 1,), np.uint64, data.data, strides=(1,))
    starts = offsets[:-1] - first
    lengths = np.diff(offsets)
    folded = _fold_words(hashes, lengths.view(np.uint64))
    long = np.flatnonzero(lengths >= LONG)
    if len(long):
        whole = data.data
        digests = b"".join(
            hashlib.blake2b(whole[starts[i] : starts[i] + lengths[i]], digest_size=8).digest() for i in long
        )
        of_long = _fold_words(folded[long], np.frombuffer(digests, "<u8"))
    short = np.where(lengths < LONG, lengths, 0)
    for at in range(
        0, max(int(short.max()), 1), 8
    ):  # one word at least: the hash of "" must not depend on its neighbours
        rest = short - at
        if at and (alive := np.flatnonzero(rest > 0)).size < rest.size:
            folded[alive] = _fold_words(folded[alive], _masked(windows[starts[alive] + at], rest[alive]))
        else:
            folded = _fold_words(folded, _masked(windows[starts + at if at else starts], rest))
    if len(long):
        folded[long] = of_long
    return folded


def _masked(words: Hashes, rest: npt.NDArray[np.int64]) -> Hashes:
    """`words` with all but the first `rest` bytes zero; a `rest` of zero or less leaves none."""
    shift = (8 - np.clip(rest, 1, 8)).astype(np.uint64) * np.uint64(8)
    words &= _ALL_BYTES >> shift
    words[rest <= 0] = 0
    return words


def _fold_lists(hashes: Hashes, offsets: pa.Array, values: pa.Array) -> Hashes:
    """Fold in the length of each list and the sum of its elements' hashes, each of which knows its position."""
    bounds = offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(bounds)
    flat = values.slice(bounds[0], bounds[-1] - bounds[0])
    places = (np.arange(len(flat)) - np.repeat(bounds[:-1] - bounds[0], lengths)).view(np.uint64)
    elements = _fold(_mixed(places + _SEED), flat)
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(elements, dtype=np.uint64)])
    sums = running[bounds[1:] - bounds[0]] - running[bounds[:-1] - bounds[0]]
    return _fold_words(_fold_words(hashes, lengths.view(np.uint64)), sums)
