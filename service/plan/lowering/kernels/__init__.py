"""The kernels of plan nodes: types become Arrow schemas, expressions become DuckDB text.

A module holds the kernels of a family of nodes, as `service/plan/nodes` does.
"""

from service.plan.lowering.kernels.aggregates import group, group_partial, over, settle
from service.plan.lowering.kernels.joins import interval, join, lookup, pair, temporal, window
from service.plan.lowering.kernels.parts import schema
from service.plan.lowering.kernels.ranking import time_sort, top_n, top_n_partial
from service.plan.lowering.kernels.rows import calc, normalize, set_operation, unnest
from service.plan.lowering.kernels.stream_windows import stream_window
from service.plan.lowering.kernels.windows import (
    full_session,
    full_window,
    in_order_of_arrival,
    numbered_windows,
    partial_session,
    partial_window,
    session_rows,
    window_rows,
)

__all__ = [
    "calc",
    "full_session",
    "full_window",
    "group",
    "group_partial",
    "in_order_of_arrival",
    "interval",
    "join",
    "lookup",
    "normalize",
    "numbered_windows",
    "over",
    "pair",
    "partial_session",
    "partial_window",
    "schema",
    "session_rows",
    "set_operation",
    "settle",
    "stream_window",
    "temporal",
    "time_sort",
    "top_n",
    "top_n_partial",
    "unnest",
    "window",
    "window_rows",
]
