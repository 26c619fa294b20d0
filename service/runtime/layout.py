"""The layout of a level's keys: each of its shards, one a task, has a range of hash slots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from operators.hashing import Hashes
from operators.slots import SLOTS, slots_of


class Layout(NamedTuple):
    """The number of shards of each level. It may be another in the next batch: state is cut by slots as it is read."""

    shards: int

    @classmethod
    def of(cls, shards: int) -> Layout:
        """Return the layout of `shards` shards, each with at least one slot."""
        return cls(min(SLOTS, shards))

    def slots_of(self, shard: int) -> range:
        """Return the slots of a shard."""
        return range(-(-shard * SLOTS // self.shards), -(-(shard + 1) * SLOTS // self.shards))

    def shard_of(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Return the shard of each hash."""
        return slots_of(hashes) * self.shards // SLOTS

    def sharing(self, slots: range) -> range:
        """Return the shards that have some of `slots`, which are at least one."""
        return range(slots.start * self.shards // SLOTS, (slots.stop - 1) * self.shards // SLOTS + 1)
