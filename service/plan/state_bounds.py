"""The state of each node between batches, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from operators.aggregates.functions import LISTS, WHOLES
from operators.over.calls import NEIGHBOURS, NOT_AGGREGATES, NUMBERINGS
from service.plan.describe import duration, names
from service.plan.nodes import (
    Aggregate,
    Attached,
    CappedSessionShape,
    CountShape,
    Cumulate,
    Hop,
    IntervalJoin,
    Join,
    JoinKind,
    LookupJoin,
    Mode,
    Node,
    Normalize,
    Over,
    PairJoin,
    Session,
    SetOperation,
    SlidingShape,
    StateShape,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Tumble,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.properties import mode, takes_arrivals, unique_keys
from service.plan.table import TimeKind
from service.plan.walk import fields, shows_right


class Kept(NamedTuple):
    """One state of a node: what is kept, and until when; no `bound` means that it may grow forever."""

    what: str
    bound: str | None


def kept(node: Node) -> tuple[Kept, ...]:
    """Return the states of `node`; none for one that works row by row."""
    match node:
        case Aggregate(keys=()):
            return (Kept("one row of totals", "a single group"),)
        case Aggregate(keys=keys, ttl=ttl):
            return (Kept(f"the totals of each ({names(node.input, keys)})", _ttl(ttl)),)
        case WindowAggregate():
            return (Kept("the totals of each open window and key", _window(node)),)
        case WindowRows(window=Session()):
            return (Kept("the rows of open sessions", _window(node)),)
        case StreamWindow():
            return (_stream_window(node),)
        case Over():
            return tuple(_over(node))
        case TopN():
            return _top_n(node)
        case TimeSort():
            processing = fields(node.input)[node.time].time is TimeKind.PROCESSING
            rows = "rows" if mode(node.input) is Mode.APPEND else "changes of rows"
            return () if processing else (Kept(f"{rows} ahead of the watermark", "the watermark reaches their time"),)
        case Normalize(key=key, ttl=ttl):
            return (Kept(f"the last row of each ({names(node, key)})", _ttl(ttl)),)
        case PairJoin():
            return (Kept("rows that one of the two inputs has answered", "the other one has answered them, too"),)
        case Join():
            pads_right = node.kind in (JoinKind.RIGHT, JoinKind.FULL)
            pads_left = node.kind in (JoinKind.LEFT, JoinKind.FULL) or not shows_right(node)
            left = _joined_rows("left", node.left, node.left_keys, counted=pads_left)
            if node.residual is None and not shows_right(node):
                right = _counted_rows(node.right, node.right_keys)
            else:
                right = _joined_rows("right", node.right, node.right_keys, counted=pads_right)
            return (Kept(left, _ttl(node.left_ttl)), Kept(right, _ttl(node.right_ttl)))
        case IntervalJoin():
            # A left row at t meets right rows from t - upper to t - lower; the latest of them decides how long.
            return (
                Kept("left rows", f"the watermark passes their time by {duration(max(0, -node.lower))}"),
                Kept("right rows", f"the watermark passes their time by {duration(max(0, node.upper))}"),
            )
        case WindowJoin():
            processing = fields(node.left)[node.left_time].time is TimeKind.PROCESSING
            closes = f"the {'clock' if processing else 'watermark'} passes the window's end"
            return (Kept("left rows", closes), Kept("right rows", closes))
        case SetOperation():
            return (Kept("how often each row is there on both sides", _ttl(node.ttl)),)
        case TemporalJoin():
            return _versions(node)
        case LookupJoin() if mode(node.left) is Mode.RETRACT:
            return (_met(node),)
        case _:
            return ()


def _joined_rows(side: str, node: Node, key: tuple[int, ...], *, counted: bool) -> str:
    """What a join keeps of one input: a row for each key, rows told apart by a unique key, or equal rows and how many
    of them there are."""
    unique = unique_keys(node)
    matches = " and how many it matches" if counted else ""
    if any(known <= set(key) for known in unique):
        by = f"of each ({names(node, key)})" if key else ""
        return f"the {side} row {by}".strip() + matches
    matches = " and how many each matches" if counted else ""
    rows = f"{side} rows by ({names(node, key)})" if key else f"all {side} rows"
    if unique:
        return f"{rows}, told apart by ({names(node, sorted(unique[0]))}){matches}"
    return f"{rows}{', equal ones once' if mode(node) is Mode.RETRACT or counted else ''}{matches}"


def _counted_rows(node: Node, key: tuple[int, ...]) -> str:
    """What a semi, anti or mark join keeps of the right input if it asks nothing but the key of its rows."""
    return f"how many right rows each ({names(node, key)}) has" if key else "how many right rows there are"


def _met(node: TemporalJoin | LookupJoin) -> Kept:
    return Kept(
        f"left rows by ({names(node.left, node.left_keys)}) and the rows that they have matched", _ttl(node.ttl)
    )


def _versions(node: TemporalJoin) -> tuple[Kept, ...]:
    current = Kept(
        f"the last version of each ({names(node.right, node.right_keys)})", "it is deleted, or a newer one is in force"
    )
    if node.right_time is None and mode(node.left) is Mode.RETRACT:
        return (current, _met(node))
    if node.left_time is None or node.right_time is None:
        return (current,)
    rows = Kept("left rows", "the watermark reaches their time")
    newer = Kept("newer versions", "the watermark reaches their time")
    if mode(node.left) is Mode.APPEND:
        return (rows, newer, current)
    met = Kept(f"the version that each ({names(node.left, [*node.left_keys, node.left_time])}) has met", _ttl(node.ttl))
    return (rows, newer, current, met)


def _top_n(node: TopN) -> tuple[Kept, ...]:
    of = f"of each ({names(node.input, node.partition)})" if node.partition else "of all"
    if node.window_time is not None:
        rows = "the rows" if node.last is None else f"the top {node.last} rows"
        if mode(node.input) is Mode.RETRACT:
            rows = "the changes of rows"
        passes = "clock" if fields(node.input)[node.window_time].time is TimeKind.PROCESSING else "watermark"
        return (Kept(f"{rows} of each open window and key", f"the {passes} passes the window's end"),)
    top = f"the top {node.last} rows {of}" if node.order else f"the first {node.last} rows {of}"
    if takes_arrivals(node):
        return ()
    if mode(node.input) is Mode.RETRACT:
        whole = f"all rows {of}" if node.partition else "all rows"
        return (Kept(f"{whole}, those near the top apart", _ttl(node.ttl)),)
    return (Kept(top, _ttl(node.ttl) if node.partition else "a single group"),)


def _ttl(milliseconds: int) -> str | None:
    return f"ttl {duration(milliseconds)} after the last write" if milliseconds else None


def _window(node: WindowAggregate | WindowRows) -> str:
    passes = "watermark" if fields(node.input)[node.time].time is not TimeKind.PROCESSING else "clock"
    firing = node.firing if isinstance(node, WindowAggregate) else None
    by = f" by {duration(firing.lateness)}" if firing is not None and firing.lateness else ""
    match node.window:
        case Tumble(size) | Hop(size) | Cumulate(size):
            return f"the {passes} passes the window's end ({duration(size)} long){by}"
        case Session(gap):
            return f"the {passes} passes the last row by {duration(gap)}"
        case Attached():
            return f"the {passes} passes the window's end{by}"


def _stream_window(node: StreamWindow) -> Kept:
    passes = "clock" if node.time is None else "watermark"
    of = f"of each ({names(node.input, node.partition)})" if node.partition else "of the stream"
    match node.shape:
        case CountShape(size, every):
            last = size - 1 if every < size else every - 1
            # A partition is never known to have had its last row.
            return Kept(f"at most {last} rows {of}", None if node.partition else "the window has its rows")
        case SlidingShape(size, delay):
            return Kept(f"rows {of}", f"the {passes} passes their time by {duration(size + delay)}")
        case CappedSessionShape(longest, timeout):
            until = f"the {passes} passes the last row by {duration(timeout)}, or the first by {duration(2 * longest)}"
            return Kept(f"the rows of open sessions {of}", until)
        case StateShape():
            return Kept(f"the rows of open windows {of}", None)
        case Tumble(size) | Hop(size):
            return Kept("rows", f"the {passes} passes the end of their last window ({duration(size)} long)")


def _over(node: Over) -> Iterator[Kept]:
    of = f"of each ({names(node.input, node.partition)})" if node.partition else "of all"
    by_partition = _ttl(node.ttl) if node.partition else "a single partition"
    processing = fields(node.input)[node.time].time is TimeKind.PROCESSING
    passes = "clock" if processing else "watermark"
    ahead = "" if processing else ", and rows ahead of the watermark"
    if mode(node.input) is Mode.RETRACT:
        yield Kept("changes of rows ahead of the watermark", "the watermark reaches their time")
        ahead = ""
    if node.time_ahead:
        until = f"the {passes} passes their time by {duration(node.time_ahead)}"
        yield Kept("rows whose frames are not complete", until)
        ahead = ""
    elif node.rows_ahead:
        waiting = f"the last {node.rows_ahead} rows {of}, which wait for the next ones"
        if node.rows_ahead == 1:
            waiting = f"the last row {of}, which waits for the next one"
        ends = f"{by_partition}, which answers them" if node.partition and node.ttl else by_partition
        yield Kept(f"{waiting}{ahead}", ends)
        ahead = ""
    # What each kind of frame keeps, as the kernel does, once.
    calls = [call.spec for call in node.calls]
    neighbours = [call for call in calls if call.function in NEIGHBOURS]
    framed = [call for call in calls if call.function not in NEIGHBOURS]
    if any(call.frame.preceding is None or call.function in NUMBERINGS for call in framed):
        unbounded = [call for call in framed if call.frame.preceding is None and call.function not in NOT_AGGREGATES]
        yield Kept(f"the running totals {of}{ahead}", by_partition)
        if any(call.function in (*LISTS, *WHOLES) for call in unbounded):
            yield Kept(f"all values that are listed {of}", _ttl(node.ttl))
        if any(call.counts_once and call.frame.preceding is None for call in framed):
            yield Kept(f"each DISTINCT value {of}", _ttl(node.ttl))
    rows = [call for call in framed if call.frame.rows and call.frame.preceding is not None]
    if rows or neighbours:
        last_rows = max(call.rows_behind for call in (*rows, *neighbours))
        counted = last_rows if node.rows_ahead else last_rows + 1
        if counted:
            yield Kept(f"the last {counted} rows {of}{ahead}", by_partition)
    ranges = [call.frame for call in framed if not call.frame.rows and call.frame.preceding is not None]
    if ranges:
        behind, following = max(f.behind for f in ranges), max(f.ahead for f in ranges)
        # Two frames: a row that comes behind the watermark by one may still be answered, and has a frame of its own.
        yield Kept(
            f"the rows {of} within {duration(behind + following)}",
            f"the {passes} passes their time by {duration(2 * (behind + following))}",
        )
