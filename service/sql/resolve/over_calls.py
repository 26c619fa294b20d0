"""The calls of OVER: which rows each reads, in which order, and what its answer waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from sqlglot import exp

from service.plan import types
from service.plan.expression_text import describe
from service.plan.expressions import Expression, Literal, render
from service.plan.nodes import NEIGHBOURS, NOT_AGGREGATES, Frame, Mode, OverCall
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.plan.types import DataType, flink
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions.aggregate_types import AGGREGATES
from service.sql.expressions.casts import assignable, cast
from service.sql.resolve.aggregate_calls import typed_call
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.over_definition import definition
from service.sql.resolve.over_frame import MOST_ROWS, frame_of
from service.sql.resolve.ranking import OF_ALL_ROWS, RANK_FUNCTIONS, RankCall, rank_call
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import call_name, canonical, positions
from service.sql.resolve.windows import not_a_time_attribute
from service.sql.scope import Scope


class Reach(IntEnum):
    """The kind of what a row waits for, in the order of nodes.

    Where it waits for other `ROWS`, or for a `CLOCK` that goes on without it, its time has passed when it is answered.
    """

    ROW = 0
    TIME = 1
    CLOCK = 2
    ROWS = 3

    @property
    def outlasts_time(self) -> bool:
        """Whether the time of an answered row says nothing of rows to come."""
        return self in (Reach.CLOCK, Reach.ROWS)


@dataclass(frozen=True, slots=True)
class FramedCall:
    """One OVER call over expressions of the input; calls of equal `partition`, `time` and `reach` share a node.

    `processing` says that the time attribute at `time` is one of processing time.
    """

    text: str
    partition: tuple[Expression, ...]
    time: int
    processing: bool
    frame: Frame
    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    distinct: bool
    filter: Expression | None
    constants: tuple[str, ...]
    node: exp.Expr

    @property
    def reach(self) -> Reach:
        """What its answer waits for."""
        spec = OverCall(self.function, (), self.type, self.frame, constants=self.constants).spec
        if spec.rows_ahead:
            return Reach.ROWS
        return Reach.ROW if not spec.time_ahead else Reach.CLOCK if self.processing else Reach.TIME

    @property
    def shown(self) -> str:
        """How messages and `explain` name it."""
        return f"{self.function}({', '.join(map(describe, self.arguments)) or '*'})"


def _of_nulls(node: exp.IgnoreNulls | exp.RespectNulls) -> SqlError:
    """IGNORE NULLS behind a call: it has the parentheses of the call before it."""
    if isinstance(node, exp.RespectNulls):
        return SqlError("RESPECT NULLS is not supported with OVER", hint="leave it out: it is what OVER does", at=node)
    return SqlError(
        "IGNORE NULLS is not supported with OVER", hint="leave the rows with NULL out, in a query inside", at=node
    )


def called_by(node: exp.Window) -> str:
    """Return the name of the function that an OVER call is of, in capitals."""
    return call_name(node.this.this if isinstance(node.this, exp.Filter) else node.this)


def over_call(
    node: exp.Window, named: dict[str, exp.Window], relation: Relation, session: ResolveContext, *, final: bool
) -> FramedCall | RankCall:
    """Return the call that `node` is. Raises SqlError, or QueryRejected if its mistakes are noted.

    `named` are the windows of the query. `final` says that rows which may be retracted are answered once, when the
    watermark reaches their time.
    """
    scope = relation.scope
    partition_nodes, order, spec = definition(node, named)
    function_node, function = node.this, called_by(node)
    numbered_by_time = _by_rising_time(order, partition_nodes, function, relation, final=final)
    if function in OF_ALL_ROWS or (function in RANK_FUNCTIONS and not numbered_by_time):
        return rank_call(node, function, partition_nodes, order, relation, session)
    if isinstance(function_node, exp.IgnoreNulls | exp.RespectNulls):
        raise _of_nulls(function_node)
    if function not in AGGREGATES and function not in NOT_AGGREGATES:
        known = (*AGGREGATES, *NOT_AGGREGATES)
        raise SqlError(f"{function or 'this'} cannot be used with OVER", hint=did_you_mean(function, known), at=node)
    time = _time(order, scope, node)
    partition = tuple(e for n in partition_nodes if (e := session.compile(n, scope)) is not None)
    frame = frame_of(spec, function)
    arguments: tuple[Expression, ...] = ()
    constants: tuple[str, ...] = ()
    type_: DataType = types.BIGINT
    distinct, filter_ = False, None
    if function in RANK_FUNCTIONS:
        if (spec is not None and frame.preceding is not None) or frame.following:
            raise SqlError(f"{function} counts all rows up to the current one: its frame cannot be another", at=node)
    elif function in NOT_AGGREGATES:
        argument, constants = (_neighbour if function in NEIGHBOURS else _numbered)(
            function, function_node, scope, session
        )
        arguments, type_ = (argument,), argument.type
    else:
        typed = typed_call(function_node, scope, session)
        arguments, type_, constants = typed.arguments, typed.type, typed.constants
        distinct, filter_ = typed.distinct, typed.filter
    return FramedCall(
        text=canonical(node, scope),
        partition=partition,
        time=time,
        processing=scope.field(time).time is TimeKind.PROCESSING,
        frame=frame,
        function=function,
        arguments=arguments,
        type=type_,
        distinct=distinct,
        filter=filter_,
        constants=constants,
        node=node,
    )


def _by_rising_time(
    order: exp.Expr | None, partition: Sequence[exp.Expr], function: str, relation: Relation, *, final: bool
) -> bool:
    """Whether rows are numbered by a time attribute, ascending: each then has its final number once it is due.

    RANK and DENSE_RANK count times, of which each ends with its batch in processing time. The ranks within a window of
    time are known when it closes.
    """
    if order is None or len(order.expressions) != 1:
        return False
    ordered = order.expressions[0]
    found = positions(ordered.this, relation.scope)
    if not isinstance(ordered.this, exp.Column) or ordered.args.get("desc") or found is None or not found:
        return False
    time = relation.scope.field(min(found)).time
    if time is TimeKind.NONE:
        return False
    if mode(relation.node) is not Mode.APPEND and not (final and time is TimeKind.EVENT):
        return False
    if function == "ROW_NUMBER":
        return True
    columns = {i for each in partition if isinstance(each, exp.Column) for i in positions(each, relation.scope) or ()}
    return not any({w.start, w.end} <= columns for w in relation.windows)


def _time(order: exp.Expr | None, scope: Scope, at: exp.Expr) -> int:
    """The time attribute that rows are ordered by."""
    if order is None or not order.expressions:
        raise SqlError("OVER needs ORDER BY", hint="order by the time attribute of the table", at=at)
    if len(order.expressions) > 1:
        raise SqlError("OVER is ordered by one column, a time attribute", at=order.expressions[1])
    ordered = order.expressions[0]
    node = ordered.this
    try:
        index = scope.lookup([p.name for p in node.parts]).index if isinstance(node, exp.Column) else None
    except SqlError as error:
        error.at = node
        raise
    if ordered.args.get("desc"):
        raise SqlError("OVER is ordered by time, ascending", at=ordered)
    if index is None:
        raise SqlError("OVER is ordered by a time attribute, not an expression", at=node)
    if scope.field(index).time is TimeKind.NONE:
        raise not_a_time_attribute(scope.field(index), "ORDER BY in OVER", node)
    return index


def _neighbour(
    function: str, node: exp.Expr, scope: Scope, session: ResolveContext
) -> tuple[Expression, tuple[str, ...]]:
    """The argument of LAG or LEAD, and its constants: how many rows away, and the value where there is none."""
    if not isinstance(node, exp.Anonymous) or not 1 <= len(node.expressions) <= 3:
        raise SqlError(f"{function} takes a value, a number of rows and a default", at=node)
    compiled = [session.compile(e, scope) for e in node.expressions]
    known = [c for c in compiled if c is not None]
    if len(known) < len(compiled):
        raise QueryRejected
    for constant, each in zip(known[1:], node.expressions[1:], strict=True):
        if not isinstance(constant, Literal):
            raise SqlError(f"the number of rows and the default of {function} are constants", at=each)
    constants = [c.text for c in known[1:2] if isinstance(c, Literal)]
    if not all(text.isdigit() and int(text) <= MOST_ROWS for text in constants):
        raise SqlError(
            f"{function} takes a whole number of rows up to {MOST_ROWS}",
            detail=f"it is {constants[0]}",
            at=node.expressions[1],
        )
    if len(known) == 3:
        if not assignable(known[2].type, known[0].type):
            raise SqlError(
                f"the default of {function} is {flink(known[2].type)}, its value {flink(known[0].type)}",
                hint="use CAST",
                at=node.expressions[2],
            )
        default = cast(known[2], known[0].type, implicit=True, zone=session.zone)
        constants.append(render(default))
    return known[0], tuple(constants) or ("1",)


def _numbered(
    function: str, node: exp.Expr, scope: Scope, session: ResolveContext
) -> tuple[Expression, tuple[str, ...]]:
    """The argument of NTH_VALUE, and which row of the frame it reads."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 2:
        raise SqlError(f"{function} takes a value and the number of a row", at=node)
    argument = session.compile(node.expressions[0], scope)
    if argument is None:
        raise QueryRejected
    number = node.expressions[1]
    if not isinstance(number, exp.Literal) or not number.name.isdigit() or not 1 <= int(number.name) <= MOST_ROWS:
        raise SqlError(f"{function} takes a whole number of a row, from 1 to {MOST_ROWS}", at=number)
    return argument, (number.name,)
