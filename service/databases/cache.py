"""A worker's cache of lookups: the rows of keys, bounded in rows and in time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from service.databases.rows import FoundRow, Key
from service.plan.table import LookupOptions


class _Kept(NamedTuple):
    rows: Sequence[FoundRow]
    read: int
    used: int


class RowCache:
    """The rows of keys; the least recently used key is dropped first. Times are those of batches, in ms."""

    def __init__(self, options: LookupOptions) -> None:
        self._options = options
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self.rows = 0

    def get(self, key: Key, now: int) -> Sequence[FoundRow] | None:
        """Return the rows of `key`, no rows if it is known to have none; None if it is not cached, or no longer."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._is_over(kept, now):
            self._drop(key)
            return None
        self._kept[key] = kept._replace(used=now)
        self._kept.move_to_end(key)
        return kept.rows

    def put(self, key: Key, rows: Sequence[FoundRow], now: int) -> None:
        """Store the rows of `key`, unless they are too many."""
        if not self._options.cached or (not rows and not self._options.cache_missing):
            return
        self._drop(key)
        if _size(rows) > self._options.max_rows:
            return
        self._kept[key] = _Kept(rows, now, now)
        self.rows += _size(rows)
        while self.rows > self._options.max_rows:
            self._drop(next(iter(self._kept)))

    def _is_over(self, kept: _Kept, now: int) -> bool:
        after_write, after_access = self._options.expire_after_write, self._options.expire_after_access
        return bool(after_write and now >= kept.read + after_write) or bool(
            after_access and now >= kept.used + after_access
        )

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.rows -= _size(kept.rows)


def _size(rows: Sequence[FoundRow]) -> int:
    """The size of an entry: a key without a row takes space, too."""
    return max(1, len(rows))
