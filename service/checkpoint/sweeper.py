"""Does what a checkpoint needs now and then, beside the batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

EVERY = 20
"""Batches between two times: to sweep reads the manifests of one version and lists the files."""

Chore = Callable[[int], None]
"""Called with the last batch that is done."""


class Sweeper:
    """Does the chores of one job, in a thread of its own, once at a time. What fails of one does not keep the others
    from being done."""

    def __init__(self, *chores: Chore) -> None:
        self._chores = chores
        self._next = 0
        self._thread: threading.Thread | None = None

    def batch_done(self, batch: int) -> None:
        """Batch `batch` is done: begin, if it is time to and the last time is over."""
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
