"""The Kafka headers with row kind, event time and query of a written row, made for a whole block at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.changes.change_encodings import KINDS
from service.formats.contract import OUT

KIND, QUERY, EVENT_TIME = "tailrace-kind", "tailrace-query", "tailrace-event-time"

_LIST = OUT.field("headers").type


def row_headers(
    kinds: np.ndarray[Any, np.dtype[np.int64]], query: str, times: pa.Array | None, own: pa.Array | None
) -> pa.Array:
    """Return a list of headers a record: tailrace-kind, tailrace-query, tailrace-event-time (milliseconds since the
    epoch as text, where the table has an event time), then those of the row's own `headers` column."""
    count = len(kinds)
    names = [KIND, QUERY]
    constants = [word.encode() for word in (*KINDS, query)]
    values: list[Any] = [kinds, np.full(count, len(KINDS))]
    spoken: pa.Array = pa.array(constants, pa.binary())
    if times is not None:
        names.append(EVENT_TIME)
        millis = pc.divide(times.view(pa.int64()), 1000)
        spoken = pa.concat_arrays([spoken, pc.cast(pc.cast(millis, pa.string()), pa.binary())])
        values.append(len(constants) + np.arange(count))
    width = len(names)
    items = pa.StructArray.from_arrays(
        [
            pa.array(names).take(pa.array(np.tile(np.arange(width), count))),
            spoken.take(pa.array(np.stack(values, axis=1).reshape(-1))),
        ],
        fields=list(_LIST.value_type),
    )
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    lists = pa.ListArray.from_arrays(offsets, items, type=_LIST)
    if own is None:
        return lists
    joined = zip(lists.to_pylist(), own_headers(own).to_pylist(), strict=True)
    return pa.array([[*added, *(mine or ())] for added, mine in joined], _LIST)


def own_headers(column: pa.Array) -> pa.Array:
    """Return a MAP<STRING, BYTES> column as lists of headers."""
    lists = [None if each is None else [{"key": k, "value": v} for k, v in each] for each in column.to_pylist()]
    return pa.array(lists, _LIST)
