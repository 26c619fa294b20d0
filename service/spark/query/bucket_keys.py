"""Bucket keys: numbers that Spark's hash spreads evenly over the shuffle partitions.

Spark hashes the grouping key again, so that buckets 0 and 1 may well fall on one partition of two. The keys are chosen
by that same hash (Murmur3 of an INT, seed 42) so that each partition gets equally many buckets.
"""

from __future__ import annotations

from itertools import count

_MASK = 0xFFFFFFFF


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def murmur3_of_int(value: int, seed: int = 42) -> int:
    """Spark's hash(INT): Murmur3 x86 32 of four bytes, as a signed number."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotate(k, 15) * 0x1B873593 & _MASK
    h = (_rotate(seed ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def bucket_keys(partitions: int, per_partition: int) -> tuple[int, ...]:
    """Keys for `partitions * per_partition` buckets; bucket b falls on shuffle partition b modulo `partitions`."""
    keys: dict[int, list[int]] = {p: [] for p in range(partitions)}
    wanted = partitions * per_partition
    found = 0
    for candidate in count():
        slot = keys[murmur3_of_int(candidate) % partitions]
        if len(slot) < per_partition:
            slot.append(candidate)
            found += 1
            if found == wanted:
                break
    return tuple(keys[b % partitions][b // partitions] for b in range(wanted))
