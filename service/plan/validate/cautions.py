"""Warnings about plans that run but may be unintended: unbounded state, work on one shard, an unproven key."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.deep_stack import on_a_deep_stack
from service.plan.describe import kind, names
from service.plan.nodes import (
    IntervalJoin,
    Job,
    Join,
    Mode,
    Node,
    Scan,
    Session,
    Sink,
    StreamWindow,
    TemporalJoin,
    WindowRows,
)
from service.plan.properties import mode, unique_keys
from service.plan.state_bounds import kept
from service.plan.validate.origin import origin
from service.plan.validate.problem import Problem
from service.plan.validate.sink_keys import materializes
from service.plan.walk import in_order, inputs

_FORGETS = "set 'table.exec.state.ttl', or give a STATE_TTL hint, if old rows may be forgotten"


@on_a_deep_stack
def warnings(job: Job) -> tuple[Problem, ...]:
    """Return what will run, but may not be meant: state without a bound, work that cannot be spread, a key not
    proven."""
    nodes = in_order(job.sinks)
    found = [problem for node in nodes for caution in _OF_A_NODE for problem in caution(node)]
    return tuple(dict.fromkeys([*found, *(problem for sink in job.sinks for problem in _key_not_proven(sink))]))


def _endless_state(node: Node) -> Iterator[Problem]:
    for state in kept(node):
        if state.bound is None:
            yield Problem(
                node.place,
                f"the state of this {kind(node)} has no bound: it keeps {state.what} forever",
                detail=_no_window_join(node),
                hint="" if isinstance(node, StreamWindow) else _FORGETS,
            )


def _no_window_join(node: Node) -> str:
    """Why a join that compares the starts and ends of windows is none whose state ends with them."""
    if not isinstance(node, Join) or not node.windowed:
        return ""
    updating = next((origin(each) for each in inputs(node) if mode(each) is Mode.RETRACT), "")
    if not updating:
        return ""
    return f"it is no window join, which answers once, when the window closes: {updating} updates and deletes rows"


def _all_in_one_shard(node: Node) -> Iterator[Problem]:
    match node:
        case StreamWindow(partition=()):
            yield Problem(
                node.place,
                f"this {kind(node)} is over the whole stream: all its rows go to one shard",
                detail="the keys of GROUP BY group the rows of a window, and do not part the stream",
                hint="add OVER (PARTITION BY column) behind the window, if each value may have windows of its own",
            )
        case WindowRows(window=Session(partition=())):
            yield Problem(
                node.place,
                "these sessions are of the whole stream: all its rows go to one shard",
                hint="write SESSION(TABLE t PARTITION BY column, ...), if each value may have sessions of its own",
            )
        case Join(left_keys=()) | IntervalJoin(left_keys=()):
            yield Problem(
                node.place,
                f"this {kind(node)} has no equality: all its rows go to one shard",
                hint="add a condition left.column = right.column",
            )


def _half_a_window_join(node: Node) -> Iterator[Problem]:
    if isinstance(node, Join) and node.half_windowed:
        yield Problem(
            node.place,
            "this join of windows is a regular join: it compares only the start or only the end of the windows",
            hint="compare both, window_start and window_end: then it answers when the window closes, and its state ends"
            " with it",
        )


def _standing_watermarks(node: Node) -> Iterator[Problem]:
    """The tables that keep all rows of a temporal join waiting while they are silent."""
    if not isinstance(node, TemporalJoin) or node.right_time is None:
        return
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


_OF_A_NODE = (_endless_state, _all_in_one_shard, _half_a_window_join, _standing_watermarks)


def _key_not_proven(sink: Sink) -> Iterator[Problem]:
    if materializes(sink):
        yield Problem(
            sink.place,
            f'the query does not prove that the primary key of "{sink.table.name}" is unique',
            detail=f"its rows are kept forever, to show the last of each key; unique keys of the query:"
            f" {_keys_in_words(sink.input)}",
        )


def _keys_in_words(node: Node) -> str:
    keys = unique_keys(node)
    return " or ".join(f"({names(node, sorted(k))})" for k in keys) if keys else "none"
