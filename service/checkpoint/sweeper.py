"""Sweeps a checkpoint now and then, beside the batches."""

from __future__ import annotations

import logging
import threading

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.sweep import sweep

EVERY = 20
"""Batches between two sweeps: each reads the manifests of one version and lists the files."""


class Sweeper:
    """Sweeps the checkpoint of one job, in a thread of its own, one sweep at a time."""

    def __init__(self) -> None:
        self._next = 0
        self._thread: threading.Thread | None = None

    def batch_done(self, address: CheckpointAddress, batch: int) -> None:
        """Batch `batch` is done: sweep, if it is time to and the last sweep is over."""
        if batch < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = batch + EVERY
        self._thread = threading.Thread(target=_swept, args=(address, batch), name="sweep", daemon=True)
        self._thread.start()


def _swept(address: CheckpointAddress, batch: int) -> None:
    try:
        sweep(address.open(), batch)
    except Exception as error:
        logging.getLogger(__name__).warning("the checkpoint was not swept: %s", error)
