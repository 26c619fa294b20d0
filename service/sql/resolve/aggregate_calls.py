"""The aggregate calls of a query: each distinct one once, its arguments and its FILTER typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from service.plan.expressions import Call, Expression, Literal, describe, render
from service.plan.nodes import AggregateCall
from service.plan.types import DataType, Row
from service.sql.errors import SqlError
from service.sql.expressions.aggregate_types import aggregate_type
from service.sql.functions.json_writing import written_as_json
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.join_conditions import checked_condition
from service.sql.resolve.syntax import call_name, canonical, is_aggregate
from service.sql.scope import Scope

_CONSTANTS = {"LISTAGG": "separator", "PERCENTILE": "percentage"}
"""Aggregates whose arguments after the first are constants, and what these are."""

_CLAUSES: Mapping[type[exp.Expr], str] = {
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.RespectNulls: "RESPECT NULLS",
    exp.WithinGroup: "WITHIN GROUP",
}


@dataclass(frozen=True, slots=True)
class TypedCall:
    """An aggregate over expressions of the input."""

    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    distinct: bool
    filter: Expression | None
    constants: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The call for a person, in `explain`."""
        arguments = ", ".join(map(describe, self.arguments)) or "*"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{arguments})"

    def placed(self, place_of: Callable[[Expression], int]) -> AggregateCall:
        """The call over columns, where `place_of` gives an expression its column."""
        return AggregateCall(
            function=self.function,
            arguments=tuple(place_of(a) for a in self.arguments),
            type=self.type,
            distinct=self.distinct,
            filter=None if self.filter is None else place_of(self.filter),
            constants=self.constants,
        )


def typed_call(node: exp.Expr, scope: Scope, session: ResolveContext) -> TypedCall:
    """The aggregate call `node`, with its DISTINCT and FILTER (WHERE ...); Abandoned if its mistakes are noted."""
    condition: Expression | None = None
    if isinstance(node, exp.Filter):
        where = node.expression.this
        compiled = session.compile(where, scope)
        condition = None if compiled is None else checked_condition(compiled, where)
        node = node.this
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        raise not_yet(f"{_CLAUSES[type(node)]} of an aggregate", node)
    function = call_name(node)
    arguments = list(node.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        if function != "COUNT" or distinct:
            raise SqlError(f"{function}(*) has no meaning", hint="COUNT(*) has", at=node)
        arguments = []
    elif not arguments:
        raise SqlError(f"{function} lacks an argument", at=node)
    words = {a.name: a.expression.name for a in arguments if isinstance(a, exp.Kwarg)}
    arguments = [a for a in arguments if not isinstance(a, exp.Kwarg)]
    typed = [session.compile(a, scope) for a in arguments]
    known = tuple(t for t in typed if t is not None)
    if len(known) < len(typed):
        raise QueryRejected
    if function == "COUNT" and distinct and len(known) > 1:
        known = (_together(known),)
    try:
        kind = aggregate_type(function, [t.type for t in known], distinct)
    except SqlError as error:
        error.at = error.at or node
        raise
    constants: tuple[str, ...] = ()
    if function == "PERCENTILE" and len(known) > 2:
        raise not_yet("the frequency of PERCENTILE", arguments[2])
    if function in _CONSTANTS:
        for each, written in zip(known[1:], arguments[1:], strict=True):
            if not isinstance(each, Literal):
                raise SqlError(f"the {_CONSTANTS[function]} of {function} is a constant", at=written)
        constants = tuple(render(c) for c in known[1:])
        known = known[:1]
    if function == "JSON_ARRAYAGG":
        written = f"CASE WHEN {{0}} IS NOT NULL THEN {written_as_json(known[0], '{0}')} END"
        constants = (written, *(("'null'",) if words.get("ON NULL") == "NULL" else ()))
    return TypedCall(function, known, kind, distinct, condition, constants)


def _together(values: tuple[Expression, ...]) -> Expression:
    """The values as one ROW, NULL if one of them is."""
    places = range(len(values))
    present = " AND ".join(f"{{{i}}} IS NOT NULL" for i in places)
    packed = ", ".join(f"f{i} := {{{i}}}" for i in places)
    type_ = Row(tuple(f"f{i}" for i in places), tuple(v.type for v in values))
    return Call("ROW", values, type_, f"CASE WHEN {present} THEN struct_pack({packed}) END")


class AggregateCalls:
    """Collects the calls of a query, in the order in which they first appear."""

    def __init__(self, scope: Scope, session: ResolveContext) -> None:
        self.scope = scope
        self.session = session
        self.found: list[TypedCall] = []
        self._positions: dict[str, int] = {}
        self._places: dict[TypedCall, int] = {}

    def collect(self, node: exp.Expr) -> None:
        """Note every aggregate call in `node` outside of OVER."""
        if isinstance(node, exp.Query):
            return
        if isinstance(node, exp.Window):
            inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
            for part in (*inner.iter_expressions(), *(node.args.get("partition_by") or ())):
                self.collect(part)
        elif is_aggregate(node):
            self._add(node)
        else:
            for part in node.iter_expressions():
                self.collect(part)

    def position(self, node: exp.Expr) -> int | None:
        """Which of the calls `node` is."""
        return self._positions.get(canonical(node, self.scope)) if is_aggregate(node) else None

    def _add(self, node: exp.Expr) -> None:
        key = canonical(node, self.scope)
        if key in self._positions:
            return
        with self.session.mistakes.collecting(node):
            try:
                call = typed_call(node, self.scope, self.session)
            except QueryRejected:
                return
            if call not in self._places:
                self._places[call] = len(self.found)
                self.found.append(call)
            self._positions[key] = self._places[call]
