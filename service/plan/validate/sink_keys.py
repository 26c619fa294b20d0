"""The primary keys of sinks, and whether the plan proves them."""

from __future__ import annotations

from service.plan.nodes import Mode, Sink
from service.plan.properties import mode, unique_keys


def sink_key(sink: Sink) -> tuple[int, ...]:
    """Return the primary key of the sink's table as positions among the columns that are written."""
    return tuple(sink.columns.index(k) for k in sink.table.key if k in sink.columns)


def materializes(sink: Sink) -> bool:
    """Return whether the sink must keep rows by its primary key: the plan updates rows under a key it does not
    prove."""
    key = frozenset(sink_key(sink))
    if not key or mode(sink.input) is Mode.APPEND:
        return False
    return not any(k <= key for k in unique_keys(sink.input))
