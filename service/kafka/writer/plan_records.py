"""The plans of batches beside the markers, for older copies of a checkpoint.

Every task writes the plan of its batch in the transaction of its marker. So if any part of a batch is committed, its
plan is, too, and a batch of which nothing is committed has none. Keys are reused, in a ring for each task: a compacted
topic keeps no more than the ring.
"""

from __future__ import annotations

import json

from service.kafka.writer.writer_settings import WriterSettings

RING_BYTES = 16 << 20
"""The most bytes of one task's plans. With a few Kafka partitions that is the longest ring."""

LONGEST_RING = 65_536
"""The most plans that are kept of one task: some hours of batches of a third of a second."""


def plan_key(settings: WriterSettings, partition: int, batch: int, size: int) -> bytes:
    """Return the key of the plan of `batch`, of `size` bytes, that a partition of the query writes.

    A larger plan may have another ring. Its length is a power of two, so the newest plans are there, as many as the
    shorter ring has; of earlier ones some are gone, and a reader has to look for gaps.
    """
    ring = LONGEST_RING
    while ring > 1 and ring * size > RING_BYTES:
        ring //= 2
    return json.dumps([settings.query, settings.checkpoint_id, partition, "plan", batch % ring]).encode()
