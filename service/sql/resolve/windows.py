"""The arguments of windows, as table functions and in GROUP BY, to a window and the time attribute it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.nodes import Cumulate, Field, Hop, Session, Tumble, Window
from service.plan.table import TimeKind
from service.plan.types import BIGINT, STRING, Text, Timestamp, TimestampLtz
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions.literals import interval_value
from service.sql.parse.stream_window_grammar import STREAM_WINDOWS
from service.sql.resolve.syntax import call_name, names_of
from service.sql.scope import Scope

_TABLE_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_GROUP_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("TIMECOL", "SIZE"),
    "HOP": ("TIMECOL", "SLIDE", "SIZE"),
    "SESSION": ("TIMECOL", "GAP"),
}
GROUP_WINDOWS = frozenset(_GROUP_ARGUMENTS)


def is_window_call(node: exp.Expr) -> bool:
    """Return whether `node` is a window of GROUP BY, or TUMBLE_START and its companions."""
    name = call_name(node)
    return name in STREAM_WINDOWS or name.split("_")[0] in GROUP_WINDOWS


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function call with its arguments by name."""

    name: str
    arguments: Mapping[str, exp.Expr]
    at: exp.Expr

    def window(self) -> Window:
        """Return the window. Raises SqlError for lengths that do not fit each other."""
        match self.name:
            case "TUMBLE":
                return Tumble(self._length("SIZE"), self._offset())
            case "HOP":
                return Hop(self._length("SIZE"), self._length("SLIDE"), self._offset())
            case "CUMULATE":
                size, step = self._length("SIZE"), self._length("STEP")
                if size % step:
                    raise SqlError(
                        "the size of CUMULATE is not a multiple of its step",
                        detail=f"the size is {size} ms, the step {step} ms",
                        at=self.arguments["SIZE"],
                    )
                return Cumulate(size, step, self._offset())
            case _:
                return Session(self._length("GAP"))

    def _length(self, name: str) -> int:
        value = self._interval(name)
        if value <= 0:
            raise SqlError(f"the {name.lower()} of {self.name} is not positive", at=self.arguments[name])
        return value

    def _offset(self) -> int:
        return self._interval("OFFSET") if "OFFSET" in self.arguments else 0

    def _interval(self, name: str) -> int:
        node = self.arguments[name]
        kind, value = interval_value(node)
        if kind.months:
            raise SqlError(
                f"the {name.lower()} of {self.name} has no fixed length",
                detail="months and years differ in length",
                hint="write it in days, hours, minutes or seconds",
                at=node,
            )
        return value


def table_call(node: exp.Expr) -> WindowCall:
    """Return the call TUMBLE(TABLE t, DESCRIPTOR(ts), ...), arguments by position or by name."""
    return WindowCall(call_name(node), _arguments(node, _TABLE_ARGUMENTS[call_name(node)], "OFFSET"), node)


def group_call(node: exp.Expr) -> WindowCall:
    """Return the call TUMBLE(ts, ...) of GROUP BY, or of TUMBLE_START(ts, ...) and its companions."""
    name = call_name(node).split("_")[0]
    return WindowCall(name, _arguments(node, _GROUP_ARGUMENTS[name], ""), node)


def _arguments(node: exp.Expr, names: Sequence[str], optional: str) -> Mapping[str, exp.Expr]:
    found: dict[str, exp.Expr] = {}
    shown = call_name(node)
    for position, argument in enumerate(node.expressions):
        if isinstance(argument, exp.Kwarg):
            name, value = argument.this.name.upper(), argument.expression
            if name not in names:
                raise SqlError(
                    f"{shown} has no argument {name}",
                    detail=f"its arguments are {', '.join(names)}",
                    hint=did_you_mean(name, names),
                    at=argument,
                )
        elif position < len(names):
            name, value = names[position], argument
        else:
            raise SqlError(f"{shown} takes {len(names)} arguments at most: {', '.join(names)}", at=argument)
        if name in found:
            raise SqlError(f"{shown} is given {name} twice", at=argument)
        found[name] = value
    missing = [n for n in names if n not in found and n != optional]
    if missing:
        raise SqlError(
            f"{shown} lacks {' and '.join(missing)}", detail=f"its arguments are {', '.join(names)}", at=node
        )
    return found


def described_time(node: exp.Expr) -> exp.Expr:
    """Return the column inside DESCRIPTOR(ts). Raises SqlError for anything else."""
    if call_name(node) != "DESCRIPTOR" or len(node.expressions) != 1:
        raise SqlError("the time column is written DESCRIPTOR(<column>)", at=node)
    found = node.expressions[0]
    assert isinstance(found, exp.Expr)
    return found


def partitioned(window: Window, data: exp.Expr, scope: Scope) -> Window:
    """Return the window with the PARTITION BY of its table argument. Raises SqlError for a window that takes none:
    SESSION alone does."""
    clause = data.args.get("partition")
    if clause is None:
        return window
    if not isinstance(window, Session):
        raise SqlError(
            f"PARTITION BY in {type(window).__name__.upper()} has no meaning",
            detail="only where a session ends depends on the rows beside it",
            hint="group by the column instead",
            at=clause,
        )
    positions: list[int] = []
    for node in clause.expressions:
        try:
            found = scope.lookup(names_of(node))
        except SqlError as error:
            error.at = node
            raise
        if found.path:
            raise SqlError(
                "PARTITION BY takes columns, not fields", hint="name the field as a column of a view", at=node
            )
        if found.index not in positions:
            positions.append(found.index)
    return replace(window, partition=tuple(positions))


def time_attribute(node: exp.Expr, scope: Scope, user: str) -> int:
    """Return the position of the time attribute that `node` names. Raises SqlError for any other column; `user`, in it,
    is what needs a time attribute."""
    if not isinstance(node, exp.Column):
        now = isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME"
        hint = "name a column that is declared AS PROCTIME()" if now else "name the column alone"
        raise SqlError(f"{user} needs a time attribute, not an expression", hint=hint, at=node)
    try:
        index = scope.lookup(names_of(node)).index
    except SqlError as error:
        error.at = node
        raise
    field = scope.field(index)
    if field.time is TimeKind.NONE:
        raise not_a_time_attribute(field, user, node)
    return index


def not_a_time_attribute(field: Field, user: str, at: exp.Expr | int) -> SqlError:
    """Return the mistake of a plain column where time is needed."""
    return SqlError(
        f'{user} needs a time attribute, and "{field.name}" is none',
        detail="a time attribute is declared with its table, and lost in a regular join, a window, an aggregate or an"
        " expression",
        hint=f"declare {_time_of(field)} in CREATE TABLE, or proctime AS PROCTIME()",
        at=at,
    )


def _time_of(field: Field) -> str:
    """What makes a time attribute of a column, as far as its type can be a time."""
    name, type_ = field.name, field.type
    if isinstance(type_, Timestamp | TimestampLtz):
        return f"WATERMARK FOR {name} AS {name} - INTERVAL '5' SECOND"
    if type_ == BIGINT:
        computed = f"TO_TIMESTAMP_LTZ({name}, 3)"
    elif type_ == STRING or isinstance(type_, Text):
        computed = f"TO_TIMESTAMP({name})"
    else:
        return "a WATERMARK for a column of type TIMESTAMP"
    return f"ts AS {computed}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"


def window_zone(field: Field, zone: str) -> str:
    """Return the zone that windows over `field` align to: the session's for an instant, none for a wall clock."""
    return zone if isinstance(field.type, TimestampLtz) else "UTC"


def window_time(field: Field) -> Field:
    """Return the window_time of windows over the time attribute `field`."""
    return Field("window_time", field.type, False, field.time)
