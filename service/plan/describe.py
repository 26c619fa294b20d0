"""Descriptions of plans in words, for `explain` and for messages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from service.plan.expression_text import describe
from service.plan.nodes import (
    MOST,
    NEIGHBOURS,
    Aggregate,
    AggregateCall,
    AnyJoin,
    Attached,
    CappedSessionShape,
    CountShape,
    Cumulate,
    Filter,
    Firing,
    Frame,
    Hop,
    IntervalJoin,
    Join,
    LookupJoin,
    Node,
    Normalize,
    OrderBy,
    Over,
    OverCall,
    PairJoin,
    Project,
    RankFunction,
    Scan,
    Session,
    SetOperation,
    SlidingShape,
    StateShape,
    StreamShape,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Tumble,
    Union,
    Unnest,
    Values,
    Window,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.table import LookupOptions
from service.plan.walk import fields

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def duration(milliseconds: int) -> str:
    """Return a duration as '1 h 30 min'."""
    if milliseconds < 0:
        return f"-{duration(-milliseconds)}"
    parts = []
    for length, unit in _UNITS:
        count, milliseconds = divmod(milliseconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def instant(milliseconds: int) -> str:
    """Return a point in time as '2024-01-01 00:00:05', in UTC."""
    text = datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return text.removesuffix(".000")


def names(node: Node, positions: Iterable[int]) -> str:
    """Return the names of the columns at `positions`, comma-separated."""
    known = fields(node)
    return ", ".join(known[p].name or f"${p}" for p in positions)


def kind(node: Node) -> str:
    """Return the name of a node's kind: 'window aggregate', 'regular join'."""
    match node:
        case WindowAggregate():
            return "window aggregate"
        case WindowRows():
            return "window rows"
        case TopN():
            return "Top-N" if node.window_time is None else "window Top-N"
        case StreamWindow(shape=shape):
            return _SHAPES[type(shape)]
        case TimeSort():
            return "sort"
        case IntervalJoin():
            return "interval join"
        case WindowJoin():
            return "window join"
        case TemporalJoin():
            return "temporal join"
        case LookupJoin():
            return "lookup join"
        case SetOperation(kind=set_kind):
            return set_kind.value
        case PairJoin():
            return "pair join"
        case Join():
            return "join"
        case _:
            return type(node).__name__.lower()


def headline(node: Node) -> str:
    """Return a node in one line: what it computes, without its changelog mode and keys."""
    match node:
        case Scan(table=table, fields=columns):
            shown = f"{table.name} ({', '.join(f.name for f in columns)})"
            return f"scan {shown}" if table.lookup is None else f"look up {shown}, {_cache(table.lookup)}"
        case Values(rows=rows):
            return f"values ({len(rows)} rows)"
        case Normalize(key=key):
            return f"normalize by ({names(node, key)}){_ttl(node.ttl)}"
        case Project():
            return "project " + ", ".join(_projected(node))
        case Filter(condition=condition):
            return f"filter {describe(condition)}"
        case Union(inputs=parts):
            return f"union all of {len(parts)}"
        case WindowRows():
            return f"window rows {window(node.window, node)} on {names(node.input, [node.time])}"
        case WindowAggregate():
            calls = _calls(node.input, node.aggregates)
            by = f" by ({names(node.input, node.keys)})" if node.keys else ""
            of = f"{window(node.window, node)} on {names(node.input, [node.time])}{by}"
            return f"window aggregate {of}: {calls or 'distinct keys'}{_firing(node.firing)}"
        case StreamWindow():
            return _stream_window(node)
        case Aggregate():
            calls = _calls(node.input, node.aggregates)
            by = f" by ({names(node.input, node.keys)})" if node.keys else " over all rows"
            return f"aggregate{by}: {calls or 'distinct keys'}{_ttl(node.ttl)}"
        case Over():
            calls = _calls(node.input, node.calls)
            by = f" partition by ({names(node.input, node.partition)})" if node.partition else ""
            return f"over{by} order by {names(node.input, [node.time])}: {calls}{_ttl(node.ttl)}"
        case TopN():
            return _top_n(node)
        case Unnest(input=below, column=column):
            more = (" with ordinality" if node.ordinality else "") + (
                ", rows without elements too" if node.outer else ""
            )
            return f"unnest {names(below, [column])}{more}"
        case TimeSort(input=below, order=order):
            return f"sort by {_order(below, order)}"
        case PairJoin():
            return f"pair join by ({names(node.left, node.left_keys)})"
        case Join():
            return f"{node.kind.value} join on {_equalities(node)}"
        case IntervalJoin():
            times = f"{names(node.left, [node.left_time])} - {names(node.right, [node.right_time])}"
            between = f"{times} between {duration(node.lower)} and {duration(node.upper)}"
            return f"{node.kind.value} interval join on {_equalities(node)}, {between}"
        case WindowJoin():
            return f"{node.kind.value} window join on {_equalities(node)}"
        case SetOperation(kind=set_kind):
            return f"{set_kind.value}{_ttl(node.ttl)}"
        case TemporalJoin():
            at = "arrival" if node.left_time is None else names(node.left, [node.left_time])
            return f"{node.kind.value} temporal join on {_equalities(node)}, as of {at}"
        case LookupJoin():
            return f"{node.kind.value} lookup join on {_equalities(node)}"


def _cache(options: LookupOptions) -> str:
    """The size of the cache of a lookup table, in words."""
    if not options.cached:
        return "no cache"
    ends = [
        f"{duration(ms)} after {what}"
        for ms, what in ((options.expire_after_write, "it was read"), (options.expire_after_access, "its last use"))
        if ms
    ]
    missing = "" if options.cache_missing else ", keys without rows not remembered"
    return f"a cache of {options.max_rows} rows a worker, each {' or '.join(ends) or 'forever'}{missing}"


def _top_n(node: TopN) -> str:
    if node.function is RankFunction.ROW_NUMBER:
        count = f" {node.last}" if node.first == 1 else f" {node.first} to {node.last}"
        count = "" if node.last in (None, MOST) else count
        text = f"{'top' if node.order else 'first'}{count}"
        if not node.order and not node.partition:
            return f"limit{count}"
    elif node.function.of_all:
        text = f"{node.function.value}({node.buckets or ''})"
    else:
        text = f"{node.function.value} {node.first} to {'the end' if node.last is None else node.last}"
    by = f" by ({names(node.input, node.partition)})" if node.partition else " of all rows"
    keys = _order(node.input, node.order)
    latest = ", the latest first" if node.latest_first else ""
    order = f" order by {keys}" if keys else " in the order of arrival"
    when = ", when the window closes" if node.window_time is not None else ""
    return f"{text}{by}{order}{latest}{when}{_ttl(node.ttl)}"


def _order(input: Node, order: Iterable[OrderBy]) -> str:
    return ", ".join(
        names(input, [key.column])
        + (" desc" if key.descending else "")
        + ("" if key.nulls_first is not key.descending else f" nulls {'first' if key.nulls_first else 'last'}")
        for key in order
    )


def window(value: Window, node: WindowRows | WindowAggregate) -> str:
    """Return a window in words, with its offset."""
    match value:
        case Tumble(size, offset):
            text = f"tumble {duration(size)}"
        case Hop(size, slide, offset):
            text = f"hop {duration(size)} every {duration(slide)}"
        case Cumulate(size, step, offset):
            text = f"cumulate {duration(size)} by {duration(step)}"
        case Session(gap, partition, numbered):
            by = f" partition by ({names(node.input, partition)})" if partition else ""
            return f"session with a gap of {duration(gap)}{by}{', rows numbered as they come' if numbered else ''}"
        case Attached(start, end):
            return f"as attached ({names(node.input, [start, end])})"
    return text + (f" offset {duration(offset)}" if offset else "")


_SHAPES: dict[type[StreamShape], str] = {
    CountShape: "count window",
    SlidingShape: "sliding window",
    CappedSessionShape: "session window",
    StateShape: "state window",
    Tumble: "tumbling window",
    Hop: "hopping window",
}


def stream_shape(node: StreamWindow) -> str:
    """Return the shape of one of eKuiper's windows in words."""
    read = fields(node.input)
    conditions = [read[c].name for c in node.conditions]
    match node.shape:
        case CountShape(size, every):
            return f"count window of {size} rows" + (f" every {every}" if every != size else "")
        case SlidingShape(size, delay):
            after = f" and the {duration(delay)} after it" if delay else ""
            fires = f", fired by {conditions[0]}" if conditions else ""
            return f"sliding window of {duration(size)} up to a row{after}{fires}"
        case CappedSessionShape(longest, timeout):
            return f"session window, timeout {duration(timeout)}, checked every {duration(longest)}"
        case StateShape():
            return "state window " + (
                f"from {conditions[0]} to {conditions[1]}"
                if len(conditions) == 2
                else f"from {conditions[0]} to the next"
            )
        case Tumble(size):
            return f"tumbling window of {duration(size)}"
        case Hop(size, slide):
            return f"hopping window of {duration(size)} every {duration(slide)}"


def _firing(firing: Firing | None) -> str:
    """When a window emits its answer, unless it is once at its end."""
    if firing is None:
        return ""
    often = {0: "with every batch"}
    early = [] if firing.early is None else [f"early {often.get(firing.early, f'every {duration(firing.early)}')}"]
    late = [] if firing.late is None else [f"late {often.get(firing.late, f'every {duration(firing.late)}')}"]
    within = f" within {duration(firing.lateness)}" if late else ""
    return f", firing {' and '.join([*early, *late])}{within}"


def _stream_window(node: StreamWindow) -> str:
    arrival = node.time is None or isinstance(node.shape, CountShape)
    order = "in the order of arrival" if arrival else f"on {names(node.input, [node.time or 0])}"
    over = f"partition by ({names(node.input, node.partition)})" if node.partition else "over the whole stream"
    seen = "" if node.seen is None else f", of which those with {fields(node.input)[node.seen].name}"
    calls = _calls(node.input, node.aggregates)
    if node.keys is None:
        gives = "its rows" + (f" and {calls}" if calls else "")
    else:
        gives = (f"by ({names(node.input, node.keys)}): " if node.keys else "") + (calls or "distinct keys")
    return f"{stream_shape(node)} {order} {over}{seen}: {gives}"


def call(input: Node, each: AggregateCall | OverCall) -> str:
    """Return an aggregate as SQL writes it."""
    inside = names(input, each.arguments) or ("*" if each.function == "COUNT" else "")
    if isinstance(each, OverCall) and each.function in NEIGHBOURS:
        return f"{each.function}({', '.join([inside, *each.constants[:1]])})"
    if isinstance(each, OverCall) and each.function == "NTH_VALUE":
        inside = ", ".join([inside, *each.constants])
    text = f"{each.function}({'DISTINCT ' if each.distinct else ''}{inside})"
    if each.filter is not None:
        text += f" FILTER ({names(input, [each.filter])})"
    return f"{text} {_frame(each.frame)}" if isinstance(each, OverCall) else text


def _frame(frame: Frame) -> str:
    """A frame as `rows 2`, or as `rows 2 to 1 following` where it does not end with the current row."""

    def edge(offset: int) -> str:
        length = str(abs(offset)) if frame.rows else duration(abs(offset))
        return f"{length} {'following' if offset > 0 else 'preceding'}" if offset else "the current row"

    unit = "rows" if frame.rows else "range"
    if frame.preceding is None:
        start = "unbounded"
    elif frame.preceding < 0:
        start = edge(-frame.preceding)
    else:
        start = str(frame.preceding) if frame.rows else duration(frame.preceding)
    return f"{unit} {start}" + (f" to {edge(frame.following)}" if frame.following else "")


def _calls(input: Node, calls: Iterable[AggregateCall | OverCall]) -> str:
    return ", ".join(call(input, c) for c in calls)


def _projected(node: Project) -> list[str]:
    texts = (describe(e) for e in node.expressions)
    return [
        t if t == f.name or t.endswith(f".{f.name}") else f"{t} AS {f.name}"
        for t, f in zip(texts, node.fields, strict=True)
    ]


def _equalities(node: AnyJoin) -> str:
    left, right = fields(node.left), fields(node.right)
    pairs = [
        f"{left[a].name} {'IS NOT DISTINCT FROM' if safe else '='} {right[b].name}"
        for a, b, safe in zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    ]
    if node.residual is not None:
        pairs.append(describe(node.residual))
    return " and ".join(pairs) or "true"


def _ttl(milliseconds: int) -> str:
    return f", ttl {duration(milliseconds)}" if milliseconds else ""
