"""The plans of batches beside the markers: how each batch was cut, for a checkpoint that is an older copy.

Every task writes the plan of its batch in the transaction of its marker. So whatever of a batch is committed, its plan
is committed with it, and a batch of which nothing is committed has none. Keys are used again, a ring of them for each
task: of a compacted topic that is all that is kept.
"""

from __future__ import annotations

import json

from service.kafka.writer.writer_settings import WriterSettings

RING_BYTES = 16 << 20
"""What the plans of one task take at most. With a few Kafka partitions that is the longest ring."""

LONGEST_RING = 65_536
"""The most plans of one task that are kept: some hours of batches of a third of a second."""


def plan_key(settings: WriterSettings, partition: int, batch: int, size: int) -> bytes:
    """Return the key of the plan of `batch`, of `size` bytes, that a partition of the query writes.

    The ring may be another for a larger plan. Its length is a power of two, so that the newest plans are there, as many
    as the shorter ring has; of those before them some are gone, and whoever reads them has to look for gaps.
    """
    ring = LONGEST_RING
    while ring > 1 and ring * size > RING_BYTES:
        ring //= 2
    return json.dumps([settings.query, settings.checkpoint_id, partition, "plan", batch % ring]).encode()
