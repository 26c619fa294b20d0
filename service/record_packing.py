"""The compressed size of a record that is sent alone, as it counts against its topic's limit.

Both the code that encodes rows and the code that sends them need it, and must compute the same number.
"""

from __future__ import annotations

import pyarrow as pa

OVERHEAD = 128
"""The most bytes of a batch of one record beside key, value and headers: its head has 61."""

OF_A_HEADER = 10
"""The most bytes of the two lengths of a header."""

_LEVELS = {"gzip": 6, "zstd": 3}
"""The levels at which librdkafka compresses; LZ4 and Snappy have none."""

_LZ4_BLOCK = 64 << 10
"""The block size in bytes that librdkafka compresses separately with LZ4."""

_CLOSE = 1 / 32
"""The part of its size by which a compressed record may be larger than estimated: its batch is compressed by another
library."""


def packed(data: bytes, beside: int, codec: str | None) -> int:
    """Return an upper bound of the bytes of a record as it is sent.

    `data` are its key and its value, `beside` is the size of headers and of the batch's head; `codec` is Arrow's name,
    None for no compression.
    """
    if codec is None:
        return len(data) + beside
    packer = pa.Codec(codec, _LEVELS.get(codec))
    step = _LZ4_BLOCK if codec == "lz4" else max(1, len(data))
    size = sum(len(packer.compress(data[at : at + step], asbytes=True)) for at in range(0, len(data), step))
    return min(int(size * (1 + _CLOSE)), len(data)) + beside
