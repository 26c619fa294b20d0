"""What will run, but may not be meant: state without a bound, work that cannot be spread, a key not proven."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.deep_stack import on_a_deep_stack
from service.plan.describe import kind, names
from service.plan.nodes import IntervalJoin, Job, Join, Node, Scan, Session, StreamWindow, TemporalJoin, WindowRows
from service.plan.properties import unique_keys
from service.plan.state_bounds import kept
from service.plan.validate.problem import Problem
from service.plan.validate.sink_keys import materializes
from service.plan.walk import in_order, inputs

_FORGETS = "set 'table.exec.state.ttl', or give a STATE_TTL hint, if old rows may be forgotten"


@on_a_deep_stack
def warnings(job: Job) -> tuple[Problem, ...]:
    """Return what will run, but may not be meant: state without a bound, work that cannot be spread, a key not
    proven."""
    found: list[Problem] = []
    for node in in_order(job.sinks):
        for state in kept(node):
            if state.bound is None:
                found.append(
                    Problem(
                        node.place,
                        f"the state of this {kind(node)} has no bound: it keeps {state.what} for ever",
                        hint="" if isinstance(node, StreamWindow) else _FORGETS,
                    )
                )
        if isinstance(node, StreamWindow) and not node.partition:
            found.append(
                Problem(
                    node.place,
                    f"this {kind(node)} is over the whole stream: all its rows meet in one shard",
                    detail="the keys of GROUP BY group the rows of a window, and do not part the stream",
                    hint="add OVER (PARTITION BY column) behind the window, if each value may have windows of its own",
                )
            )
        if isinstance(node, WindowRows) and isinstance(node.window, Session) and not node.window.partition:
            found.append(
                Problem(
                    node.place,
                    "these sessions are of the whole stream: all its rows meet in one shard",
                    hint="write SESSION(TABLE t PARTITION BY column, ...), if each value may have sessions of its own",
                )
            )
        if isinstance(node, Join | IntervalJoin) and not node.left_keys:
            found.append(
                Problem(
                    node.place,
                    f"this {kind(node)} has no equality: all its rows meet in one shard",
                    hint="add a condition left.column = right.column",
                )
            )
        if isinstance(node, Join) and node.half_windowed:
            found.append(
                Problem(
                    node.place,
                    "this join of windows is a regular join: it compares only the start or only the end of the windows",
                    hint="compare both, window_start and window_end: then it answers when the window closes, and its"
                    " state ends with it",
                )
            )
        if isinstance(node, TemporalJoin) and node.right_time is not None:
            found += _standing_watermarks(node)
    for sink in job.sinks:
        if materializes(sink):
            found.append(
                Problem(
                    sink.place,
                    f'the query does not prove that the primary key of "{sink.table.name}" is unique',
                    detail=f"its rows are kept for ever, to show the last of each key; unique keys of the query:"
                    f" {_keys_in_words(sink.input)}",
                )
            )
    return tuple(dict.fromkeys(found))


def _standing_watermarks(node: TemporalJoin) -> Iterator[Problem]:
    """The tables that keep all rows waiting while they are silent."""
    for scan in in_order(inputs(node)):
        if not isinstance(scan, Scan):
            continue
        connector = scan.table.connector
        if connector.idle_timeout == 0 and connector.bounded.mode == "unbounded":
            yield Problem(
                node.place,
                f'while the table "{scan.table.name}" is silent, no row of this temporal join is answered',
                detail="a row waits until the watermarks of both inputs have reached its time",
                hint="give the table 'scan.watermark.idle-timeout', or set 'table.exec.source.idle-timeout'",
            )


def _keys_in_words(node: Node) -> str:
    keys = unique_keys(node)
    return " or ".join(f"({names(node, sorted(k))})" for k in keys) if keys else "none"
