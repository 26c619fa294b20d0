"""The digest of a batch's input: of its plan, and of the source rows that were read for it.

A sink stores the digest with the batch. A checkpoint that was restored from an older copy plans a batch of the same
number at another time; it has another digest, so it is refused instead of taken for a replay. A batch of the same plan
can also read other records than before, since Kafka has compacted the topic meanwhile; that is distinguished from the
first case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

LENGTH = 8
"""Bytes of the digest of one range, and of each half of a batch's digest."""


def digest_range(channel: str, first: int, last: int, count: int) -> bytes:
    """Return the digest of the `count` records from `first` to `last` (offsets, both inclusive) of a channel."""
    return hashlib.blake2b(f"{channel}:{first}:{last}:{count}".encode(), digest_size=LENGTH).digest()


def union(payloads: Iterable[bytes]) -> bytes:
    """Return the digests of several payloads, each once, in order."""
    marks = {p[i : i + LENGTH] for p in payloads for i in range(0, len(p), LENGTH)}
    return b"".join(sorted(marks))


def digest(planned: int, payloads: Iterable[bytes]) -> bytes:
    """Return the digest of a batch: that of the time at which it was `planned`, then that of all source rows."""
    plan = hashlib.blake2b(planned.to_bytes(8), digest_size=LENGTH).digest()
    return plan + hashlib.blake2b(union(payloads), digest_size=LENGTH).digest()


def brief(payloads: Iterable[bytes]) -> bytes:
    """Return one digest of all, so that the payload does not grow with the number of channels; empty for none."""
    marks = union(payloads)
    return hashlib.blake2b(marks, digest_size=LENGTH).digest() if marks else b""
