"""From a node to the kernel that computes it: types become Arrow schemas, expressions become DuckDB text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import pyarrow as pa

import operators.aggregates.group_by as group_by
import operators.joins.interval_join as interval_join
import operators.joins.regular_join as regular_join
import operators.joins.temporal_join as temporal_join
import operators.joins.window_join as window_join
import operators.over.over as over_kernel
import operators.ranking.retracting_top_n as retracting_top_n
import operators.ranking.top_n as top_n_kernel
import operators.ranking.window_top_n as window_top_n
import operators.rows.normalize as normalize_kernel
import operators.rows.set_operation as set_operation_kernel
import operators.windows.count_window as count_window
import operators.windows.firing_aggregate as firing_aggregate
import operators.windows.session_aggregate as session_aggregate
import operators.windows.session_partial as session_partial
import operators.windows.session_rows as session_rows_kernel
import operators.windows.session_window as session_window
import operators.windows.shapes as windows
import operators.windows.sliding_window as sliding_window
import operators.windows.state_window as state_window
import operators.windows.time_window as time_window
import operators.windows.window_aggregate as window_aggregate
import operators.windows.window_partial as window_partial
import operators.windows.window_rows as window_rows_kernel
from operators.aggregates.functions import AggregateSpec
from operators.columns import positional
from operators.kernel import Kernel
from operators.ranking.limit import LimitOperator
from operators.ranking.time_sort import TimeSortOperator
from operators.ranking.top_n_partial import TopNPartialOperator
from operators.rows.calc import Calc
from operators.rows.unnest import UnnestOperator
from operators.windows.window_output import WindowOutput
from service.plan.expressions import Expression, render
from service.plan.nodes import (
    Aggregate,
    AggregateCall,
    Attached,
    CappedSessionShape,
    CountShape,
    Cumulate,
    Field,
    Hop,
    IntervalJoin,
    Join,
    Mode,
    Node,
    Normalize,
    Over,
    Session,
    SetOperation,
    SlidingShape,
    StateShape,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Tumble,
    Unnest,
    Window,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.properties import mode, takes_arrivals
from service.plan.table import TimeKind
from service.plan.types import DataType, TimestampLtz, arrow
from service.plan.walk import fields


def schema(columns: Sequence[Field]) -> pa.Schema:
    """The visible columns of blocks of a relation."""
    return schema_of([f.type for f in columns])


def schema_of(types: Sequence[DataType]) -> pa.Schema:
    """The visible columns of blocks with columns of `types`."""
    return positional([arrow(t) for t in types])


def calc(input: pa.Schema, expressions: Sequence[Expression], where: Expression | None) -> Calc:
    """A projection of the rows for which `where` is true."""
    return Calc(
        input=input,
        output=schema_of([e.type for e in expressions]),
        expressions=tuple(render(e) for e in expressions),
        where=None if where is None else render(where),
    )


def group_partial(node: Aggregate) -> group_by.GroupPartial:
    """The stateless half of a GROUP BY."""
    return group_by.GroupPartial(
        input=schema(fields(node.input)),
        keys=node.keys,
        aggregates=tuple(map(_aggregate, node.aggregates)),
        append=mode(node.input) is Mode.APPEND,
    )


def group(node: Aggregate) -> group_by.GroupBy:
    """The stateful half of a GROUP BY."""
    return group_by.GroupBy(partial=group_partial(node), output=schema(node.fields), ttl=node.ttl)


def partial_window(node: WindowAggregate) -> window_partial.WindowPartial:
    """The stateless half of a window aggregate."""
    return window_partial.WindowPartial(
        input=schema(fields(node.input)),
        time=node.time,
        window=_window(node.window),
        keys=node.keys,
        aggregates=tuple(map(_aggregate, node.aggregates)),
        append=mode(node.input) is Mode.APPEND,
        processing=_processing(node.input, node.time),
        zone=_zone(node),
        lateness=0 if node.firing is None else node.firing.lateness,
    )


def full_window(
    node: WindowAggregate,
) -> window_aggregate.WindowAggregateOperator | firing_aggregate.FiringAggregateOperator:
    """The stateful half of a window aggregate."""
    if node.firing is not None:
        return firing_aggregate.FiringAggregateOperator(
            partial=partial_window(node), output=schema(node.fields), firing=node.firing
        )
    return window_aggregate.WindowAggregateOperator(partial=partial_window(node), output=schema(node.fields))


def partial_session(node: WindowAggregate, gap: int) -> session_partial.SessionPartial:
    """The stateless half of an aggregate by sessions."""
    return session_partial.SessionPartial(
        input=schema(fields(node.input)),
        time=node.time,
        gap=gap,
        keys=node.keys,
        aggregates=tuple(map(_aggregate, node.aggregates)),
        append=mode(node.input) is Mode.APPEND,
        processing=_processing(node.input, node.time),
        zone=_zone(node),
    )


def full_session(node: WindowAggregate, gap: int, *, whole: bool) -> session_aggregate.SessionAggregate:
    """The stateful half of an aggregate by sessions, or (`whole`) both halves in one."""
    partial = partial_session(node, gap)
    return session_aggregate.SessionAggregate(partial=partial, output=schema(node.fields), whole=whole)


def session_rows(node: WindowRows, window: Session) -> session_rows_kernel.SessionRows:
    """The table function SESSION by itself."""
    return session_rows_kernel.SessionRows(
        partial=session_partial.SessionPartial(
            input=schema(fields(node.input)),
            time=node.time,
            gap=window.gap,
            keys=window.partition,
            aggregates=(),
            append=mode(node.input) is Mode.APPEND,
            processing=_processing(node.input, node.time),
            zone=_zone(node),
        )
    )


def window_rows(node: WindowRows) -> window_rows_kernel.WindowRowsOperator:
    """A window table function by itself."""
    window = _window(node.window)
    assert not isinstance(window, Attached), "rows that carry their windows need none attached"
    return window_rows_kernel.WindowRowsOperator(
        input=schema(fields(node.input)), time=node.time, window=window, zone=_zone(node)
    )


def stream_window(node: StreamWindow) -> Kernel:
    """One of eKuiper's windows."""
    result = WindowOutput(
        input=schema(fields(node.input)),
        output=schema(node.fields),
        seen=node.seen,
        keys=node.keys,
        aggregates=tuple(map(_aggregate, node.aggregates)),
    )
    match node.shape:
        case CountShape(size, every):
            return count_window.CountWindow(
                result=result, partition=node.partition, time=node.time, size=size, every=every
            )
        case SlidingShape(size, delay):
            fires = node.conditions[0] if node.conditions else None
            return sliding_window.SlidingWindow(
                result=result, partition=node.partition, time=node.time, size=size, delay=delay, fires=fires
            )
        case CappedSessionShape(longest, timeout):
            return session_window.SessionWindow(
                result=result,
                partition=node.partition,
                time=node.time,
                longest=longest,
                timeout=timeout,
                zone=_stream_zone(node),
            )
        case StateShape():
            begin, *emit = node.conditions
            return state_window.StateWindow(
                result=result, partition=node.partition, time=node.time, begin=begin, emit=emit[0] if emit else None
            )
        case Tumble(size):
            return time_window.TimeWindow(
                result=result,
                partition=node.partition,
                time=node.time,
                window=windows.tumble(size),
                zone=_stream_zone(node),
            )
        case Hop(size, slide):
            hop = windows.Hop(size=size, slide=slide)
            return time_window.TimeWindow(
                result=result, partition=node.partition, time=node.time, window=hop, zone=_stream_zone(node)
            )
        case _:
            assert_never(node.shape)


def _stream_zone(node: StreamWindow) -> str | None:
    """Processing time and instants are aligned to the session's wall clock; wall-clock time is taken as it is."""
    instants = node.time is None or isinstance(fields(node.input)[node.time].type, TimestampLtz)
    return node.zone if instants else None


def over(node: Over) -> over_kernel.OverOperator:
    """OVER windows that share their partitions and order."""
    return over_kernel.OverOperator(
        input=schema(fields(node.input)),
        output=schema(node.fields),
        partition=node.partition,
        time=node.time,
        calls=tuple(
            over_kernel.OverCallSpec(
                function=c.function,
                frame=c.frame,
                arguments=c.arguments,
                distinct=c.distinct,
                filter=c.filter,
                constants=c.constants,
            )
            for c in node.calls
        ),
        processing=_processing(node.input, node.time),
        ttl=node.ttl,
    )


def join(node: Join) -> regular_join.RegularJoin:
    """A regular join."""
    return regular_join.RegularJoin(
        left=schema(fields(node.left)),
        right=schema(fields(node.right)),
        kind=node.kind,
        left_keys=node.left_keys,
        right_keys=node.right_keys,
        null_safe=node.null_safe,
        residual=None if node.residual is None else render(node.residual),
        append=(mode(node.left) is Mode.APPEND, mode(node.right) is Mode.APPEND),
        ttl=(node.left_ttl, node.right_ttl),
    )


def interval(node: IntervalJoin) -> interval_join.IntervalJoinOperator:
    """An interval join."""
    return interval_join.IntervalJoinOperator(
        left=schema(fields(node.left)),
        right=schema(fields(node.right)),
        kind=node.kind,
        left_keys=node.left_keys,
        right_keys=node.right_keys,
        null_safe=node.null_safe,
        left_time=node.left_time,
        right_time=node.right_time,
        lower=node.lower,
        upper=node.upper,
        residual=None if node.residual is None else render(node.residual),
        processing=_processing(node.left, node.left_time),
    )


def window(node: WindowJoin) -> window_join.WindowJoinOperator:
    """A window join."""
    return window_join.WindowJoinOperator(
        left=schema(fields(node.left)),
        right=schema(fields(node.right)),
        kind=node.kind,
        left_keys=node.left_keys,
        right_keys=node.right_keys,
        null_safe=node.null_safe,
        left_time=node.left_time,
        right_time=node.right_time,
        residual=None if node.residual is None else render(node.residual),
        processing=_processing(node.left, node.left_time),
    )


def set_operation(node: SetOperation) -> set_operation_kernel.SetOperationOperator:
    """INTERSECT or EXCEPT."""
    return set_operation_kernel.SetOperationOperator(output=schema(node.fields), kind=node.kind, ttl=node.ttl)


def temporal(node: TemporalJoin) -> temporal_join.TemporalJoinOperator:
    """A temporal join."""
    return temporal_join.TemporalJoinOperator(
        left=schema(fields(node.left)),
        right=schema(fields(node.right)),
        kind=node.kind,
        left_keys=node.left_keys,
        right_keys=node.right_keys,
        left_time=node.left_time,
        right_time=node.right_time,
        residual=None if node.residual is None else render(node.residual),
        append=mode(node.left) is Mode.APPEND,
        ttl=node.ttl,
        untimed_deletes=node.untimed_deletes,
    )


def top_n_partial(node: TopN) -> TopNPartialOperator:
    """The rows of a block that may be among the first of all."""
    return TopNPartialOperator(output=schema(fields(node.input)), ranking=node.ranking)


def unnest(node: Unnest) -> UnnestOperator:
    """Rows beside the elements that they hold."""
    return UnnestOperator(
        input=schema(fields(node.input)), column=node.column, ordinality=node.ordinality, outer=node.outer
    )


def time_sort(node: TimeSort) -> TimeSortOperator:
    """Rows in the order of time."""
    return TimeSortOperator(
        output=schema(fields(node)), order=node.order, processing=_processing(node.input, node.time)
    )


def top_n(node: TopN) -> Kernel:
    """The first rows of each group."""
    if node.window_time is not None:
        return window_top_n.WindowTopNOperator(
            input=schema(fields(node.input)),
            ranking=node.ranking,
            time=node.window_time,
            processing=_processing(node.input, node.window_time),
        )
    if takes_arrivals(node):
        ranking = node.ranking
        return LimitOperator(output=schema(fields(node.input)), first=ranking.first, last=ranking.last)
    if mode(node.input) is Mode.RETRACT:
        return retracting_top_n.RetractingTopNOperator(
            input=schema(fields(node.input)), ranking=node.ranking, ttl=node.ttl
        )
    return top_n_kernel.TopNOperator(input=schema(fields(node.input)), ranking=node.ranking, ttl=node.ttl)


def normalize(node: Normalize) -> normalize_kernel.NormalizeOperator:
    """The last row of each key."""
    return normalize_kernel.NormalizeOperator(output=schema(fields(node)), key=node.key, ttl=node.ttl)


def _aggregate(call: AggregateCall) -> AggregateSpec:
    return AggregateSpec(
        function=call.function,
        arguments=call.arguments,
        distinct=call.distinct,
        filter=call.filter,
        constants=call.constants,
    )


def _window(window: Window) -> windows.Window:
    match window:
        case Tumble(size, offset):
            return windows.tumble(size, offset)
        case Hop() | Cumulate() | Attached():
            return window
        case Session():
            raise TypeError("session windows have kernels of their own")
        case _:
            assert_never(window)


def _processing(node: Node, time: int) -> bool:
    return fields(node)[time].time is TimeKind.PROCESSING


def _zone(node: WindowRows | WindowAggregate) -> str | None:
    """Windows align to the session's wall clock when the time is an instant; wall-clock time is taken as it is."""
    return node.zone if isinstance(fields(node.input)[node.time].type, TimestampLtz) else None
