"""The nodes of a logical plan: immutable, typed, each one a relation whose rows change over time.

Inside a plan every relation is a log of rows with weights, so its changelog mode is one of two: APPEND (only +1) or
RETRACT (any weight). Upsert streams exist only outside: `Normalize` turns an upsert source into a retracting relation,
and a sink consolidates by its key. Positions are indexes into the input's fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from operators.joins.kinds import JoinKind as JoinKind
from operators.over.calls import Frame as Frame
from operators.ranking.ranking import EVERY_RANK, Ranking
from operators.ranking.ranking import OrderBy as OrderBy
from operators.ranking.ranking import RankFunction as RankFunction
from operators.rows.set_operation import SetKind as SetKind
from operators.windows.firing import Firing as Firing
from operators.windows.shapes import Attached as Attached
from operators.windows.shapes import Cumulate as Cumulate
from operators.windows.shapes import Hop as Hop
from service.plan.expressions import Expression
from service.plan.table import Table, TimeKind
from service.plan.types import DataType


class Mode(Enum):
    """What kinds of changes a relation's changelog holds."""

    APPEND = "append"
    RETRACT = "retract"


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a relation."""

    name: str
    type: DataType
    nullable: bool = True
    time: TimeKind = TimeKind.NONE


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the pipeline file a node was written, 1-based."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Rows of a source table: the declared columns at `columns`, in that order, computed ones included.

    The plan's `Scan` already is the decoded table with its watermark; an upsert source or a keyed CDC source that may
    repeat itself has a `Normalize` on top.
    """

    table: Table
    columns: tuple[int, ...]
    fields: tuple[Field, ...]
    place: Place = Place()

    def __post_init__(self) -> None:
        _check(len(self.columns) == len(self.fields), self, "has one field for each column that it reads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Constant rows (VALUES), each row a tuple of constant expressions; append-only, emitted once."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: tuple[Field, ...]
    place: Place = Place()

    def __post_init__(self) -> None:
        _check(all(len(row) == len(self.fields) for row in self.rows), self, "has one expression a field in every row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalize:
    """The last row of each `key` of an upsert stream, as a retracting relation."""

    input: Node
    key: tuple[int, ...]
    ttl: int = 0
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_positions(self, self.input, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One expression a field over the input's columns. A plain column keeps its time attribute."""

    input: Node
    expressions: tuple[Expression, ...]
    fields: tuple[Field, ...]
    place: Place = Place()

    def __post_init__(self) -> None:
        _check(len(self.expressions) == len(self.fields), self, "has one expression a field")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The rows for which `condition` is true."""

    input: Node
    condition: Expression
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """All rows of all inputs (UNION ALL), which have the same types."""

    inputs: tuple[Node, ...]
    fields: tuple[Field, ...]
    place: Place = Place()

    def __post_init__(self) -> None:
        _check(
            all([f.type for f in columns(each)] == [f.type for f in self.fields] for each in self.inputs),
            self,
            "has inputs of its own types",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOperation:
    """INTERSECT or EXCEPT of two inputs with the types of `fields`; `ttl` in ms, 0 = for ever."""

    left: Node
    right: Node
    kind: SetKind
    fields: tuple[Field, ...]
    ttl: int = 0
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Tumble:
    """Windows of `size` ms; a start is inside, an end is not. Aligned to the epoch plus `offset` ms."""

    size: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that end `gap` ms after their last row. A table function has them for each value of the input's columns
    at `partition`, an aggregate for each of its keys."""

    gap: int
    partition: tuple[int, ...] = ()


Window = Tumble | Hop | Cumulate | Session | Attached


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """A window table function that is not aggregated at once: each row once a window, with window_start, window_end and
    window_time appended. `zone` is the session zone when `time` is a TIMESTAMP_LTZ, which windows align to."""

    input: Node
    time: int
    window: Window
    fields: tuple[Field, ...]
    zone: str = "UTC"
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_positions(self, self.input, (self.time,))
        _check(len(self.fields) == len(columns(self.input)) + 3, self, "adds three columns to those of its input")


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over columns of the input. `filter` is the position of a BOOLEAN column (FILTER (WHERE ...));
    `constants` are literal arguments as DuckDB text, such as LISTAGG's separator."""

    function: str
    arguments: tuple[int, ...]
    type: DataType
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAggregate:
    """Aggregates per window and key, emitted once when the window closes, or as `firing` says.

    Fields: the keys, the aggregates, then window_start, window_end (TIMESTAMP(3) as the session's wall clock) and
    window_time (the time attribute, end - 1 ms).
    """

    input: Node
    time: int
    window: Window
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    zone: str = "UTC"
    firing: Firing | None = None
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_positions(self, self.input, (*self.keys, *_read(self.aggregates)))
        _check(
            len(self.fields) == len(self.keys) + len(self.aggregates) + 3,
            self,
            "has the keys, the aggregates and the columns of the window",
        )


@dataclass(frozen=True, slots=True)
class CountShape:
    """Windows of the last `size` rows, one at each `every`-th row."""

    size: int
    every: int


@dataclass(frozen=True, slots=True)
class SlidingShape:
    """Windows of the `size` ms up to a row and the `delay` ms after it, one for each row, or for each that fires."""

    size: int
    delay: int = 0


@dataclass(frozen=True, slots=True)
class CappedSessionShape:
    """Sessions that end after `timeout` ms without a row, and at a multiple of `longest` ms once they are longer."""

    longest: int
    timeout: int


@dataclass(frozen=True, slots=True)
class StateShape:
    """Windows from a row that begins one to the next that ends it; with one condition, from each row to the next."""


StreamShape = CountShape | SlidingShape | CappedSessionShape | StateShape | Tumble | Hop


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWindow:
    """eKuiper's windows: rows are gathered over the whole stream, or `partition`, in their order; each window that
    closes is then grouped by `keys`, or, where that is None, its rows come out.

    `time` is the event-time attribute, or None for processing time. `conditions` are positions of BOOLEAN columns that
    the shape reads: which rows fire a sliding window, begin and end a window of states. `seen` is the position of one
    that says which rows of a window are looked at (WHERE). Fields: the keys, or the input's columns; the aggregates;
    the start and the end of the window and the time of the row (of a group, the end), BIGINT ms since the epoch.
    """

    input: Node
    shape: StreamShape
    time: int | None
    partition: tuple[int, ...]
    conditions: tuple[int, ...]
    seen: int | None
    keys: tuple[int, ...] | None
    aggregates: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    zone: str = "UTC"
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Aggregates per key without a window; `ttl` in ms, 0 = for ever. Fields: the keys, then the aggregates.
    Without keys there is one group, which exists from the start only once a row has come, as in Flink."""

    input: Node
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    ttl: int = 0
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_positions(self, self.input, (*self.keys, *_read(self.aggregates)))
        _check(len(self.fields) == len(self.keys) + len(self.aggregates), self, "has the keys, then the aggregates")


@dataclass(frozen=True, slots=True)
class OverCall:
    """An aggregate (or ROW_NUMBER, LAG, FIRST_VALUE, LAST_VALUE) over a frame; `constants` are literal arguments, such
    as LAG's offset."""

    function: str
    arguments: tuple[int, ...]
    type: DataType
    frame: Frame
    distinct: bool = False
    filter: int | None = None
    constants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """OVER windows sharing PARTITION BY and ORDER BY. Fields: the input's, then one a call."""

    input: Node
    partition: tuple[int, ...]
    time: int
    calls: tuple[OverCall, ...]
    fields: tuple[Field, ...]
    ttl: int = 0
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_positions(self, self.input, (self.time, *self.partition, *_read(self.calls)))
        _check(
            len(self.fields) == len(columns(self.input)) + len(self.calls),
            self,
            "has the columns of its input, then one a call",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopN:
    """The rows of each `partition` whose rank is within `first` to `last`, both inclusive; `last` is None until a
    condition on the rank bounds it. Fields: the input's, then the rank if it is `shown`.

    `window_time` is the position of the windows' time where the partitions are windows: each is then answered once,
    when it closes. Where rows tie, the one that arrived earlier is the first; the later with `latest_first`.
    """

    input: Node
    partition: tuple[int, ...]
    order: tuple[OrderBy, ...]
    fields: tuple[Field, ...]
    function: RankFunction = RankFunction.ROW_NUMBER
    first: int = 1
    last: int | None = None
    latest_first: bool = False
    window_time: int | None = None
    shown: bool = True
    ttl: int = 0
    place: Place = Place()

    def __post_init__(self) -> None:
        time = () if self.window_time is None else (self.window_time,)
        _check_positions(self, self.input, (*self.partition, *(key.column for key in self.order), *time))
        _check(
            len(self.fields) == len(columns(self.input)) + self.shown,
            self,
            "has the columns of its input, then the rank if it is shown",
        )

    @property
    def ranking(self) -> Ranking:
        """What its kernel computes."""
        return Ranking(
            partition=self.partition,
            order=self.order,
            function=self.function,
            first=self.first,
            last=EVERY_RANK if self.last is None else self.last,
            latest_first=self.latest_first,
            shown=self.shown,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSort:
    """The rows of an append-only input in the order of a time attribute, ascending, then of the rest of `order`."""

    input: Node
    order: tuple[OrderBy, ...]
    place: Place = Place()

    @property
    def time(self) -> int:
        """The position of the time attribute."""
        return self.order[0].column


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest:
    """Each row once for each element of the ARRAY, or entry of the MAP, at `column`; with `outer` once at least.

    Fields: the input's, then those of an element that is a ROW, the key and the value of an entry, or else the element
    itself, then its place from 1 with `ordinality`.
    """

    input: Node
    column: int
    ordinality: bool
    outer: bool
    fields: tuple[Field, ...]
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_positions(self, self.input, (self.column,))

    @property
    def added(self) -> int:
        """How many columns it adds."""
        return len(self.fields) - len(columns(self.input))


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A regular join. `residual` reads left columns first, then right. `null_safe[i]` = IS NOT DISTINCT FROM on key i.
    TTLs in ms, 0 = for ever. `half_windowed`: both inputs have windows, of which only the start or only the end is
    compared. Fields: left's then right's (left's only for SEMI and ANTI, and one more, whether they
    match, for MARK)."""

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    residual: Expression | None
    fields: tuple[Field, ...]
    left_ttl: int = 0
    right_ttl: int = 0
    half_windowed: bool = False
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_join(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoin:
    """A join on keys and on left time - right time within [lower, upper], both in ms and inclusive."""

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    lower: int
    upper: int
    residual: Expression | None
    fields: tuple[Field, ...]
    place: Place = Place()

    def __post_init__(self) -> None:
        _check_join(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoin:
    """A join of rows of one window, answered when it closes: the keys hold its start and its end. `left_time` and
    `right_time` are the positions of window_time."""

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    residual: Expression | None
    fields: tuple[Field, ...]
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin:
    """Left rows, INNER or LEFT, with the version of the right row of the same key at their own time.

    `right` is an upsert stream by `right_keys` of which every change is a version: one that is taken back ends the row
    of its key. In event time `right_time` is its time attribute; None says that `left_time` is PROCTIME(), and that a
    row meets the version that is there when it arrives. `untimed_deletes`: deletes of `right` may come without a time.
    Where rows of `left` may be taken back, what they have met is forgotten after `ttl` ms (0 = never).
    """

    left: Node
    right: Node
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_time: int
    right_time: int | None
    residual: Expression | None
    fields: tuple[Field, ...]
    untimed_deletes: bool = False
    ttl: int = 0
    place: Place = Place()

    @property
    def null_safe(self) -> tuple[bool, ...]:
        """NULL is the key of no version."""
        return (False,) * len(self.left_keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """An INSERT INTO: the input's columns, already cast, in the order of the table's writable columns."""

    input: Node
    table: Table
    columns: tuple[int, ...]
    place: Place = Place()


Node = (
    Scan
    | Values
    | Normalize
    | Project
    | Filter
    | Union
    | WindowRows
    | WindowAggregate
    | StreamWindow
    | Aggregate
    | Over
    | TopN
    | TimeSort
    | Unnest
    | Join
    | IntervalJoin
    | WindowJoin
    | TemporalJoin
    | SetOperation
)

AnyJoin = Join | IntervalJoin | WindowJoin | TemporalJoin
"""The nodes with a left and a right input, equal keys and a residual condition."""


@dataclass(frozen=True, slots=True)
class Job:
    """One Spark query: the INSERTs of a statement set, or a single INSERT. Nodes shared by several sinks are the same
    object. `settings` are the SET keys in force, in Flink's names."""

    name: str
    sinks: tuple[Sink, ...]
    settings: tuple[tuple[str, str], ...] = ()
    zone: str = "UTC"


def columns(node: Node) -> tuple[Field, ...]:
    """The columns of `node`."""
    return columns(node.input) if isinstance(node, Filter | Normalize | TimeSort) else node.fields


def _check(holds: bool, node: object, claim: str) -> None:
    """Raise ValueError where a node is not what its class says: a mistake of Tailrace, not of a query."""
    if not holds:
        raise ValueError(f"a {type(node).__name__} {claim}")


def _check_positions(node: object, input: Node, positions: Iterable[int]) -> None:
    width = len(columns(input))
    _check(all(0 <= p < width for p in positions), node, f"reads columns of its input, which has {width}")


def _read(calls: Sequence[AggregateCall] | Sequence[OverCall]) -> Iterator[int]:
    """The positions that aggregates read."""
    for call in calls:
        yield from call.arguments
        if call.filter is not None:
            yield call.filter


def _check_join(join: Join | IntervalJoin) -> None:
    counts = {len(join.left_keys), len(join.right_keys), len(join.null_safe)}
    _check(len(counts) == 1, join, "has as many keys on the left as on the right")
    _check_positions(join, join.left, join.left_keys)
    _check_positions(join, join.right, join.right_keys)
    shown = len(columns(join.right)) if join.kind.shows_right else join.kind is JoinKind.MARK
    _check(len(join.fields) == len(columns(join.left)) + shown, join, "has the columns of its inputs")
