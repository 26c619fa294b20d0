"""Which source rows a batch was made from, as a set of short digests: one for each channel and range of offsets.

A sink keeps their digest with the batch, so that a checkpoint restored from an older copy, which would cut batches in
another way, is refused instead of taken for a replay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

LENGTH = 8
"""Bytes of the digest of one range."""


def digest_range(channel: str, first: int, last: int) -> bytes:
    """The digest of the rows `first` to `last` (offsets, both inclusive) of a channel."""
    return hashlib.blake2b(f"{channel}:{first}:{last}".encode(), digest_size=LENGTH).digest()


def union(payloads: Iterable[bytes]) -> bytes:
    """The digests of several payloads, each once, in order."""
    marks = {p[i : i + LENGTH] for p in payloads for i in range(0, len(p), LENGTH)}
    return b"".join(sorted(marks))


def digest(payloads: Iterable[bytes]) -> bytes:
    """One digest of all of them."""
    return hashlib.blake2b(union(payloads), digest_size=16).digest()
