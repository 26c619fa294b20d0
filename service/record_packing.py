"""The compressed size of a record that is sent alone, as it counts against its topic's limit.

Both who writes rows in a format and who sends them need it, and they must come to the same number.
"""

from __future__ import annotations

import pyarrow as pa

OVERHEAD = 128
"""Bytes that a batch of one record has beside key, value and headers, at most: its head has 61."""

OF_A_HEADER = 10
"""Bytes of the two lengths of a header, at most."""

_LEVELS = {"gzip": 6, "zstd": 3}
"""The levels at which librdkafka compresses; LZ4 and Snappy have none."""

_LZ4_BLOCK = 64 << 10
"""Bytes that librdkafka compresses for themselves with LZ4."""

_CLOSE = 1 / 32
"""Part of its size by which a compressed record may be larger than estimated: its batch is not compressed by the same
library."""


def packed(data: bytes, beside: int, codec: str | None) -> int:
    """Return the bytes of a record when it is sent, or some more: `data` are its key and its value, `beside` is what
    headers and the head of a batch take; `codec` as Arrow names it, None where nothing is compressed."""
    if codec is None:
        return len(data) + beside
    packer = pa.Codec(codec, _LEVELS.get(codec))
    step = _LZ4_BLOCK if codec == "lz4" else max(1, len(data))
    size = sum(len(packer.compress(data[at : at + step], asbytes=True)) for at in range(0, len(data), step))
    return min(int(size * (1 + _CLOSE)), len(data)) + beside
