"""The lookup options of a database table, read from its WITH clause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.plan.table import LookupOptions
from service.sql.options.given import GivenOptions


def read_lookup(options: GivenOptions, values: Mapping[str, Any]) -> LookupOptions:
    """Return how a table of a database is asked for rows; an older name of an option of the cache asks for one, too."""

    def chosen(name: str, *others: str, default: Any) -> Any:
        return next((values[key] for key in (name, *others) if values.get(key) is not None), default)

    older = "lookup.cache.max-rows" in options.given or "lookup.cache.ttl" in options.given
    cached = chosen("lookup.cache", default="PARTIAL" if older else "NONE") == "PARTIAL"
    partial = "lookup.partial-cache."
    for key, option in options.given.items():
        if key.startswith(partial) and not cached:
            options.mistakes.note(
                f"'{key}' has no effect without a cache", hint="set 'lookup.cache' = 'PARTIAL'", at=option.key_at
            )
    standard = LookupOptions("")
    return LookupOptions(
        table=values.get("table-name") or "",
        keys=chosen("tailrace.lookup.batch-keys", default=standard.keys),
        connections=chosen("tailrace.lookup.connections", default=standard.connections),
        retries=max(0, chosen("lookup.max-retries", default=standard.retries)),
        patience=chosen("connection.max-retry-timeout", default=standard.patience),
        cached=cached,
        max_rows=chosen(f"{partial}max-rows", "lookup.cache.max-rows", default=standard.max_rows),
        expire_after_write=chosen(f"{partial}expire-after-write", "lookup.cache.ttl", default=0),
        expire_after_access=chosen(f"{partial}expire-after-access", default=0),
        cache_missing=chosen(f"{partial}cache-missing-key", "lookup.cache.caching-missing-key", default=True),
    )
