"""The regular maintenance of a checkpoint, between the batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

EVERY = 20
"""The number of batches between two sweeps: a sweep reads the manifests of one version and lists all files."""

Chore = Callable[[int], None]
"""Called with the last batch that is done."""


class Sweeper:
    """Runs the maintenance of one job, in a thread of its own. A step that fails does not keep the others from
    running."""

    def __init__(self, *chores: Chore) -> None:
        self._chores = chores
        self._next = 0
        self._thread: threading.Thread | None = None

    def batch_done(self, batch: int) -> None:
        """Start the maintenance after batch `batch`, if it is due and the previous one has ended."""
        if batch < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = batch + EVERY
        self._thread = threading.Thread(target=self._do, args=(batch,), name="sweep", daemon=True)
        self._thread.start()

    def _do(self, batch: int) -> None:
        for chore in self._chores:
            try:
                chore(batch)
            except Exception as error:
                logging.getLogger(__name__).warning("the checkpoint was not swept: %s", error)
