"""What a plan may not ask for, found before anything starts and said with its place; and what it had better not ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from operators.aggregates.functions import ENDS, refusal
from operators.over.calls import NOT_AGGREGATES
from service.plan.deep_stack import on_a_deep_stack
from service.plan.describe import kind, names
from service.plan.expressions import describe, deterministic, repeatable
from service.plan.nodes import (
    Aggregate,
    Filter,
    IntervalJoin,
    Job,
    Join,
    JoinKind,
    LookupJoin,
    Mode,
    Node,
    Normalize,
    Over,
    OverCall,
    Place,
    Project,
    Scan,
    Session,
    Sink,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    WindowAggregate,
    WindowRows,
)
from service.plan.passes import normalize
from service.plan.properties import carries_changes, mode, unique_keys
from service.plan.state_bounds import kept
from service.plan.table import Table, TimeKind
from service.plan.walk import fields, in_order, inputs


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a plan: `primary` says what, `detail` what we know, `hint` what to do, `place` where."""

    place: Place
    primary: str
    detail: str = ""
    hint: str = ""


_TOP_N = (
    "GROUP BY without a window keeps the order in which rows came; or order by a column, SELECT ... FROM (SELECT *,"
    " ROW_NUMBER() OVER (PARTITION BY key ORDER BY time) AS n FROM ...) WHERE n = 1, or take MIN or MAX"
)
_FORGETS = "set 'table.exec.state.ttl', or give a STATE_TTL hint, if old rows may be forgotten"


class PlanErrors(Exception):
    """All that keeps a job from running."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(p.primary for p in problems))
        self.problems = problems


def check(job: Job) -> None:
    """Raise PlanErrors if the normalized job cannot run."""
    found = _problems(job)
    if found:
        raise PlanErrors(found)


@on_a_deep_stack
def problems(job: Job) -> tuple[Problem, ...]:
    """Return what keeps a job, as it was written, from running."""
    return _problems(normalize(job))


def _problems(job: Job) -> tuple[Problem, ...]:
    """In the order of the nodes."""
    found = [p for node in in_order(job.sinks) for p in _node_problems(node)]
    found += _read_as_streams(job)
    found += [p for sink in job.sinks for p in _sink_problems(sink)]
    return tuple(dict.fromkeys(found))


def _read_as_streams(job: Job) -> Iterator[Problem]:
    """Tables of databases that are read in another way than by a lookup join."""
    read = [sink.input for sink in job.sinks]
    for node in in_order(job.sinks):
        read += inputs(node)[:1] if isinstance(node, LookupJoin) else inputs(node)
    for node in read:
        if isinstance(node, Scan) and node.table.lookup is not None:
            yield Problem(
                node.place,
                f'table "{node.table.name}" of a database cannot be read as a stream',
                detail="'jdbc' is asked for the rows of a key",
                hint=f"write JOIN {node.table.name} FOR SYSTEM_TIME AS OF <left>.<proctime> AS ... ON ..., or read the"
                " changes of the table from Kafka",
            )


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


def only_appends(table: Table) -> bool:
    """Return whether the records of `table` can say nothing but that a row is new."""
    return table.connector.kind in ("kafka", "upsert-kafka") and not carries_changes(table)


def _node_problems(node: Node) -> Iterator[Problem]:
    if isinstance(node, StreamWindow):
        yield from _stream_window_problems(node)
    time = _time(node)
    if isinstance(node, WindowAggregate | WindowRows | Over) and mode(node.input) is Mode.RETRACT:
        field = fields(node.input)[node.time]
        if field.time is TimeKind.PROCESSING:
            yield Problem(
                node.place,
                f"{_article(kind(node))} {kind(node)} in processing time cannot read rows that are taken back later",
                detail=f'"{field.name}" says when a change arrives; {origin(node.input)} updates and deletes rows',
                hint="order by an event time" if isinstance(node, Over) else "use a window in event time",
            )
    if isinstance(node, IntervalJoin | TimeSort) or (isinstance(node, TopN) and node.window_time is not None):
        for each in inputs(node):
            if mode(each) is Mode.RETRACT:
                yield Problem(
                    node.place,
                    f"{_article(kind(node))} {kind(node)} cannot read rows that are taken back later",
                    detail=f"{origin(each)} updates and deletes rows",
                    hint="put it before that step, or use GROUP BY without a window",
                )
    if isinstance(node, TopN):
        yield from _top_n_problems(node)
    if isinstance(node, TemporalJoin) and node.right_time is None and mode(node.left) is Mode.RETRACT:
        yield Problem(
            node.place,
            "a temporal join in processing time cannot read rows that are taken back later",
            detail=f"{origin(node.left)} updates and deletes rows",
            hint="join FOR SYSTEM_TIME AS OF an event time, or leave the time out: a regular join corrects its answer",
        )
    if isinstance(node, Aggregate | WindowAggregate | Over):
        yield from _aggregate_problems(node)
    if time is not None:
        field = fields(inputs(node)[0])[time]
        if field.time is TimeKind.NONE:
            yield Problem(
                node.place,
                f'column "{field.name}" is no time attribute here',
                hint=f"declare WATERMARK FOR {field.name} in CREATE TABLE, and do not change the column on its way",
            )
    yield from _unrepeatable(node)
    if isinstance(node, Scan) and node.table.connector.kind == "upsert-kafka" and not node.table.key:
        yield _no_key(node.table, node.place)


def _time(node: Node) -> int | None:
    """The position of the time attribute that `node` goes by, if it goes by one of its only input."""
    match node:
        case WindowAggregate(time=time) | WindowRows(time=time) | Over(time=time) | TimeSort(time=time):
            return time
        case TopN(window_time=window_time):
            return window_time
        case _:
            return None


def _top_n_problems(node: TopN) -> Iterator[Problem]:
    if node.last is None and node.window_time is None:
        name = node.function.value
        yield Problem(
            node.place,
            f"{name} in this order needs a bound",
            detail="each new row would change the rank of all rows behind it",
            hint=f"keep the first rows: SELECT ... FROM (SELECT *, {name}() OVER (...) AS n FROM ...) WHERE n <= 10",
        )


def _unrepeatable(node: Node) -> Iterator[Problem]:
    """Expressions that would have another value for the same row later: on a replay, or when it is taken back."""
    match node:
        case Project(expressions=expressions):
            values = expressions
        case Filter(condition=condition):
            values = (condition,)
        case Join(residual=asks) | IntervalJoin(residual=asks) | TemporalJoin(residual=asks) if asks is not None:
            values = (asks,)
        case LookupJoin(residual=asks) if asks is not None:
            values = (asks,)
        case Scan(table=table) if table.watermark is not None and not repeatable(table.watermark):
            yield Problem(
                node.place,
                f'the watermark of table "{table.name}" would have another value on a replay',
                detail=f"it is computed as {describe(table.watermark)}",
                hint="compute it from columns of the table alone",
            )
            return
        case _:
            return
    once = isinstance(node, TemporalJoin | LookupJoin)  # it answers a left row once
    asked = inputs(node)[:1] if once else inputs(node)
    changing = next((each for each in asked if mode(each) is Mode.RETRACT), None)
    if isinstance(node, LookupJoin):
        changing = None  # a row is taken back with what it has met
    for place, value in enumerate(values):
        if repeatable(value):
            continue
        if changing is not None:
            declared = isinstance(changing, Scan)
            named = f'"{node.fields[place].name}", which is {describe(value)},' if isinstance(node, Project) else ""
            yield Problem(
                node.place,
                f"{named or describe(value)} would have another value when its row is taken back",
                detail=f"{origin(changing)} updates and deletes rows",
                hint="leave it out, or take a time that the records carry"
                if declared
                else "compute it where rows enter, before that step",
            )
        elif not deterministic(value):
            yield Problem(
                node.place,
                f"{describe(value)} would have another value on a replay",
                detail="it is drawn from the record that a row was read from, and a row has none here",
                hint="draw it in a query on the table, before rows are aggregated",
            )
        elif isinstance(node, IntervalJoin) and node.kind is not JoinKind.INNER:
            yield Problem(
                node.place,
                f"{describe(value)} would have another value when it is asked again whether a row has matched",
                detail="an interval join that is not INNER asks once more when the row's time has passed",
                hint="compute it where rows enter, before the join",
            )


def _aggregate_problems(node: Aggregate | WindowAggregate | Over) -> Iterator[Problem]:
    """Aggregates that no operator computes, or not over such rows."""
    append = mode(node.input) is Mode.APPEND or isinstance(node, Over)
    for call in node.calls if isinstance(node, Over) else node.aggregates:
        if isinstance(call, OverCall) and call.function in NOT_AGGREGATES:
            continue
        over = isinstance(call, OverCall)
        bounded = not isinstance(call, OverCall) or call.frame.preceding is not None
        distinct = call.distinct or call.function == "APPROX_COUNT_DISTINCT"
        windowed = isinstance(node, WindowAggregate)
        if why := refusal(
            call.function, distinct=distinct, append=append, over=over, bounded=bounded, windowed=windowed
        ):
            detail = "" if append else f"{origin(node.input)} updates and deletes rows"
            yield Problem(node.place, why, detail, _TOP_N if call.function in ENDS and not append else "")


def _stream_window_problems(node: StreamWindow) -> Iterator[Problem]:
    if mode(node.input) is Mode.RETRACT:
        yield Problem(
            node.place,
            f"a {kind(node)} cannot read rows that are taken back later",
            detail=f"{origin(node.input)} updates and deletes rows",
            hint="put it before that step, or use GROUP BY without a window",
        )
    for call in node.aggregates:
        distinct = call.distinct or call.function == "APPROX_COUNT_DISTINCT"
        if why := refusal(call.function, distinct=distinct, append=True):
            yield Problem(node.place, why)


def _sink_problems(sink: Sink) -> Iterator[Problem]:
    table = sink.table
    if table.connector.kind == "upsert-kafka" and not table.key:
        yield _no_key(table, sink.place)
    form = table.connector.value_format
    if form and form.kind == "debezium-json" and form.options.get("schema-include", "").lower() == "true":
        yield Problem(
            sink.place,
            f'table "{table.name}" cannot be written with a schema in each record',
            detail="'debezium-json.schema-include' is for reading",
            hint="leave it out",
        )
    if only_appends(table) and mode(sink.input) is Mode.RETRACT:
        value = table.connector.value_format
        assert value is not None
        yield Problem(
            sink.place,
            f'table "{table.name}" takes new rows only, but the query updates its answer',
            detail=f"format '{value.kind}' cannot say that a row was changed; {origin(sink.input)} changes rows",
            hint="use 'connector' = 'upsert-kafka' with a PRIMARY KEY, or 'format' = 'debezium-json'",
        )


def _no_key(table: Table, place: Place) -> Problem:
    return Problem(
        place,
        f'table "{table.name}" needs a PRIMARY KEY',
        detail="'upsert-kafka' keeps one row a key, the last one",
        hint="add PRIMARY KEY (column, ...) NOT ENFORCED",
    )


def origin(node: Node) -> str:
    """Return the node nearest to the sources that makes this relation take rows back, in words."""
    for each in inputs(node):
        if mode(each) is Mode.RETRACT:
            return origin(each)
    match node:
        case Scan(table=table):
            return f'table "{table.name}"'
        case Normalize(input=Scan(table=table)):
            return f'table "{table.name}"'
        case Aggregate():
            return f"GROUP BY {names(node.input, node.keys)}" if node.keys else "the aggregate"
        case WindowAggregate():
            return "a window that answers early or late ('table.exec.emit...')"
        case _:
            return f"the {kind(node)}"


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _keys_in_words(node: Node) -> str:
    keys = unique_keys(node)
    return " or ".join(f"({names(node, sorted(k))})" for k in keys) if keys else "none"
