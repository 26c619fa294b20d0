"""Few hashes for many keys, so that what happens by chance once in a long time happens with every batch."""

from __future__ import annotations

import numpy as np
import pytest

from operators import hashing, slots
from operators.state.tables import grouped, keyed

HALVES = 0x8000000080000000
"""One bit of each half of a hash: two groups, and two members in each."""


def share_hashes(monkeypatch: pytest.MonkeyPatch, mask: int = HALVES) -> None:
    """Leave only the bits in `mask` of every hash that chooses where a row is kept."""

    def few(table, columns):
        return hashing.bucket_hash(table, columns) & np.uint64(mask)

    for module in (slots, keyed, grouped):
        monkeypatch.setattr(module, "bucket_hash", few)
