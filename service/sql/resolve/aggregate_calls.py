"""The aggregate calls of a query: each distinct one once, its arguments and its FILTER typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from service.plan.expression_text import describe
from service.plan.expressions import Call, Expression, Literal, render
from service.plan.nodes import AggregateCall
from service.plan.passes.push_filters import both
from service.plan.types import BOOLEAN, DataType, Row
from service.sql.compiler.constants import constant_value
from service.sql.errors import SqlError
from service.sql.expressions.aggregate_types import aggregate_type
from service.sql.functions.json_writing import written_as_json
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.join_conditions import checked_condition
from service.sql.resolve.syntax import call_name, canonical, is_aggregate, parts_of_over
from service.sql.scope import Scope

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
        """Return the call over columns, where `place_of` gives an expression its column."""
        return AggregateCall(
            function=self.function,
            arguments=tuple(place_of(a) for a in self.arguments),
            type=self.type,
            distinct=self.distinct,
            filter=None if self.filter is None else place_of(self.filter),
            constants=self.constants,
        )


def _star(function: str, arguments: Sequence[exp.Expr], node: exp.Expr, *, distinct: bool) -> SqlError:
    """That * means no argument of such a call."""
    if len(arguments) > 1:
        return SqlError(f"* is no argument beside others in {function}", hint="name the columns", at=node)
    if function == "COUNT":
        detail, hint = "* stands for rows, not for a value of theirs", "write COUNT(DISTINCT column), or COUNT(*)"
        return SqlError("COUNT(DISTINCT *) has no meaning", detail=detail, hint=hint, at=node)
    word = "DISTINCT " if distinct else ""
    hint = f"write {function}({word}column); COUNT(*) counts all rows"
    return SqlError(f"{function}({word}*) has no meaning", hint=hint, at=node)


def _with_nulls_or_without(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """The call without RESPECT NULLS or IGNORE NULLS, in its parentheses or behind, and whether it ignores NULL."""
    inside = node.expressions[0] if isinstance(node, exp.Anonymous) and len(node.expressions) == 1 else None
    clause = node if type(node) in _CLAUSES else inside
    if clause is None or type(clause) not in _CLAUSES:
        return node, False
    call = clause.this if clause is node else node
    if call_name(call) != "ARRAY_AGG" or isinstance(clause, exp.WithinGroup):
        raise not_yet(f"{_CLAUSES[type(clause)]} of an aggregate", node)
    if inside is not None and clause is inside:
        call = call.copy()
        call.set("expressions", [inside.this.copy()])
    return call, isinstance(clause, exp.IgnoreNulls)


def _present(value: Expression) -> Expression:
    """That a value is not NULL."""
    return Call("NOT", (Call("IS NULL", (value,), BOOLEAN, "({0} IS NULL)"),), BOOLEAN, "(NOT {0})")


def typed_call(node: exp.Expr, scope: Scope, session: ResolveContext) -> TypedCall:
    """Return the aggregate call `node`, with its DISTINCT and FILTER (WHERE ...). Raises SqlError, or QueryRejected if
    its mistakes are noted."""
    condition: Expression | None = None
    if isinstance(node, exp.Filter):
        where = node.expression.this
        compiled = session.compile(where, scope)
        condition = None if compiled is None else checked_condition(compiled, where)
        node = node.this
    node, ignores_nulls = _with_nulls_or_without(node)
    function = call_name(node)
    arguments = list(node.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    if any(isinstance(each, exp.Star) for each in arguments):
        if function != "COUNT" or distinct or len(arguments) > 1:
            raise _star(function, arguments, node, distinct=distinct)
        arguments = []
    elif not arguments:
        raise SqlError(f"{function} lacks an argument", at=node)
    words = {a.name: a.expression.name for a in arguments if isinstance(a, exp.Kwarg)}
    arguments = [a for a in arguments if not isinstance(a, exp.Kwarg)]
    typed = [session.compile(a, scope) for a in arguments]
    known = tuple(t for t in typed if t is not None)
    if len(known) < len(typed):
        raise QueryRejected
    if ignores_nulls:
        condition = both([*([condition] if condition is not None else []), _present(known[0])])
    if function == "COUNT" and distinct and len(known) > 1:
        known = (_together(known, len(known)),)
    try:
        kind = aggregate_type(function, [t.type for t in known], distinct)
    except SqlError as error:
        error.at = error.at or node
        raise
    constants: tuple[str, ...] = ()
    match function:
        case "LISTAGG" | "PERCENTILE":
            constants = _constants(function, known[1:], arguments[1:])
            known = known[:1]
        case "JSON_ARRAYAGG":
            constants = _json_constants(known[0], "{0}", null=words.get("ON NULL") == "NULL")
        case "JSON_OBJECTAGG":
            null = words.get("ON NULL") != "ABSENT"
            constants = _json_constants(known[1], "struct_extract({0}, 'f1')", null=null)
            known = (_together(known, 1 if null else 2),)
    return TypedCall(function, known, kind, distinct, condition, constants)


def _constants(function: str, given: tuple[Expression, ...], written: list[exp.Expr]) -> tuple[str, ...]:
    """The separator of LISTAGG, or the percentages of PERCENTILE, as DuckDB text."""
    if function == "PERCENTILE":
        if len(given) > 1:
            raise not_yet("the frequency of PERCENTILE", written[1])
        value = constant_value(given[0])
        listed = value if isinstance(value, list) else [value]
        percentages = [float(each) for each in listed if isinstance(each, int | float | Decimal)]
        if not percentages or len(percentages) < len(listed):
            raise SqlError("the percentage of PERCENTILE is a constant, a number or an ARRAY of numbers", at=written[0])
        wrong = next((each for each in percentages if not 0 <= each <= 1), None)
        if wrong is not None:
            raise SqlError(f"a percentage of PERCENTILE is between 0 and 1, not {wrong}", at=written[0])
        return tuple(map(str, percentages))
    if not all(isinstance(each, Literal) for each in given):
        raise SqlError("the separator of LISTAGG is a constant", at=written[0])
    return tuple(render(each) for each in given)


def _json_constants(value: Expression, place: str, *, null: bool) -> tuple[str, ...]:
    """The template that writes `value`, found at `place` of the argument, as JSON; the text of NULL where it is
    written."""
    written = f"CASE WHEN {place} IS NOT NULL THEN {written_as_json(value, place)} END"
    return (written, *(("'null'",) if null else ()))


def _together(values: tuple[Expression, ...], present_ones: int) -> Expression:
    """The values as one ROW, NULL if one of the first `present_ones` is."""
    places = range(len(values))
    present = " AND ".join(f"{{{i}}} IS NOT NULL" for i in places[:present_ones])
    packed = ", ".join(f"f{i} := {{{i}}}" for i in places)
    type_ = Row(tuple(f"f{i}" for i in places), tuple(v.type for v in values))
    template = f"CASE WHEN {present} THEN struct_pack({packed}) END"
    return Call("ROW", values, type_, template, constants=(present_ones,))


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
            for part in parts_of_over(node):
                self.collect(part)
        elif is_aggregate(node):
            self._add(node)
        else:
            for part in node.iter_expressions():
                self.collect(part)

    def position(self, node: exp.Expr) -> int | None:
        """Return which of the calls `node` is."""
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
