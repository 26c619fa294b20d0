"""Compilation of a parsed scalar expression to a typed one that DuckDB computes as Flink SQL would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from service.plan import types
from service.plan.expressions import Call, Column, Expression, depth
from service.plan.types import Row, flink
from service.sql.compiler.chains import chained, terms
from service.sql.compiler.function_calls import applied, unknown_function
from service.sql.compiler.unsupported import unsupported
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions import literals
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.sharing import shared
from service.sql.functions import FORMS, FUNCTIONS, Form
from service.sql.parse.call_grammar import TYPED_LITERAL
from service.sql.scope import Scope

__all__ = ["Context", "compile_expression"]

MAX_DEPTH = 250
"""How deep operators and calls may nest in an expression; terms of one operator, such as AND, are no nesting."""

# Functions that are written without parentheses and arrive as names.
_BARE = {"LOCALTIMESTAMP", "LOCALTIME", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_ROW_TIMESTAMP"}


def names_no_column(node: exp.Column) -> bool:
    """Return whether what looks like a column may be a function without parentheses, or the word before MAP[...]."""
    if len(node.parts) > 1 or node.parts[0].args.get("quoted"):
        return False
    return node.name.upper() in _BARE or (node.name.upper() == "MAP" and isinstance(node.parent, exp.Bracket))


def compile_expression(node: exp.Expr, scope: Scope, context: Context) -> Expression:
    """Return the typed expression of `node`, whose names are columns of `scope`.

    A mistake raises SqlError; where several arguments of a call are wrong, all but the last are noted in
    `context.mistakes` first, so that all are listed.
    """
    compiled = _Compiler(scope, context).compile(node)
    if depth(compiled) > MAX_DEPTH:
        raise SqlError(
            f"the expression nests more than {MAX_DEPTH} calls and operators",
            hint="compute a part of it in a subquery",
            at=node,
        )
    return compiled


class _Compiler:
    def __init__(self, scope: Scope, context: Context) -> None:
        self.scope = scope
        self.context = context

    def compile(self, node: exp.Expr) -> Expression:
        method = _COMPILERS.get(type(node))
        if method is None:
            raise unsupported(node)
        try:
            return method(self, node)
        except SqlError as error:
            if error.at is None:
                error.at = node
            raise

    def all(self, nodes: Sequence[exp.Expr]) -> tuple[Expression, ...]:
        """Each of `nodes`; the mistakes of all of them are found before the last one is raised."""
        done: list[Expression] = []
        failed: SqlError | None = None
        for node in nodes:
            try:
                done.append(self.compile(node))
            except SqlError as error:
                if failed is not None:
                    self.context.mistakes.add_error(failed)
                failed = error
        if failed is not None:
            raise failed
        return tuple(done)

    def apply(self, name: str, *nodes: exp.Expr) -> Expression:
        """The function or operator `name` of these arguments."""
        return applied(name, self.all(nodes), self.context)

    def column(self, node: exp.Expr) -> Expression:
        parts = list(node.parts) if isinstance(node, exp.Column) else _dotted(node)
        if parts is None:
            assert isinstance(node, exp.Dot)
            return field_of(self.compile(node.this), node.expression.name)
        names = [part.name for part in parts]
        bare = len(parts) == 1 and not parts[0].args.get("quoted") and names[0].upper() in _BARE
        if bare and not any(c.field.name == names[0] for c in self.scope):
            return applied(names[0].upper(), (), self.context)
        found = self.scope.lookup(names)
        value: Expression = Column(found.index, found.field.type, ".".join(names[: len(names) - len(found.path)]))
        for name in found.path:
            value = field_of(value, name)
        return value

    def literal(self, node: exp.Expr) -> Expression:
        return literals.string(node.name) if node.args["is_string"] else literals.number(node.name)

    def adjacent(self, node: exp.Expr) -> Expression:
        """'a' 'b', which is one text."""
        return literals.string("".join(part.name for part in node.expressions))

    def negative(self, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Interval):
            return literals.literal_interval(node)
        if isinstance(node.this, exp.Literal) and not node.this.args["is_string"]:
            positive = literals.number(node.this.name)
            # The least BIGINT and INT have no positive counterpart of their own type.
            for type_, least in ((types.INT, 2**31), (types.BIGINT, 2**63)):
                if node.this.name == str(least):
                    return literals.negative(least, type_)
            return literals.negated(positive)
        return self.apply("unary -", node.this)

    def case(self, node: exp.Expr) -> Expression:
        branches: list[exp.Expr] = []
        for branch in node.args["ifs"]:
            condition = branch.this
            if condition.meta.get("values"):
                condition = exp.In(this=node.this.copy(), expressions=[e.copy() for e in condition.expressions])
            elif node.this is not None:
                condition = exp.EQ(this=node.this.copy(), expression=condition.copy())
            branches += [condition, branch.args["true"]]
        default = node.args.get("default") or exp.Null()
        return self.apply("CASE", *branches, default)

    def cast(self, node: exp.Expr) -> Expression:
        value = self.compile(node.this)
        try:
            to = self.context.type_of(node.args["to"])
        except ValueError as error:
            raise SqlError(str(error), at=node) from None
        return cast(value, to, try_=isinstance(node, exp.TryCast), zone=self.context.zone)

    def call(self, node: exp.Expr) -> Expression:
        this = node.this
        name = (this.name if isinstance(this, exp.Expr) else str(this)).upper()
        if name.endswith(TYPED_LITERAL):
            text = node.expressions[0].name
            kept = literals.to_microseconds(text)
            if kept != text:
                self.context.cut_to_microseconds(f"{name.removesuffix(TYPED_LITERAL)} '{text}'", node)
            return literals.typed(name.removesuffix(TYPED_LITERAL), kept)
        if name in FORMS:
            keywords = {e.name: e.expression for e in node.expressions if isinstance(e, exp.Kwarg)}
            given = tuple(e for e in node.expressions if not isinstance(e, exp.Kwarg))
            return shared(FORMS[name](Form(name, node, given, keywords, self.compile, self.context)))
        if name not in FUNCTIONS:
            raise unknown_function(name)
        return self.apply(name, *node.expressions)

    def is_(self, node: exp.Expr) -> Expression:
        what = node.expression
        match what:
            case exp.Null():
                return self.apply("IS NULL", node.this)
            case exp.Boolean():
                return self.apply("IS TRUE" if what.this else "IS FALSE", node.this)
            case exp.JSON():
                return self.apply(f"IS JSON {what.this or 'VALUE'}", node.this)
        raise SqlError(
            "IS is followed by NULL, TRUE, FALSE, UNKNOWN or JSON",
            hint="for a value write =",
            at=what,
        )

    def between(self, node: exp.Expr) -> Expression:
        name = "BETWEEN SYMMETRIC" if node.args.get("symmetric") else "BETWEEN"
        return self.apply(name, node.this, node.args["low"], node.args["high"])

    def in_(self, node: exp.Expr) -> Expression:
        if node.args.get("query"):
            raise unsupported(node)
        if not node.expressions:
            raise SqlError(
                "IN needs the values that it compares with",
                detail="there is none in parentheses behind it",
                hint="write IN (1, 2), or IN (SELECT ...)",
                at=node,
            )
        return self.apply("IN", node.this, *node.expressions)

    def like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Expression:
        name = "LIKE" if isinstance(node, exp.Like) else "SIMILAR TO"
        matched = self.apply(name, node.this, node.expression, *([escape] if escape is not None else []))
        return applied("NOT", (matched,), self.context) if node.args.get("negate") else matched

    def escape(self, node: exp.Expr) -> Expression:
        return self.like(node.this, node.expression)

    def bracket(self, node: exp.Expr) -> Expression:
        if isinstance(node.this, exp.Column) and node.this.name.upper() == "MAP" and len(node.this.parts) == 1:
            return self.apply("MAP[]", *node.expressions)
        return self.apply("[]", node.this, *node.expressions)


def field_of(value: Expression, name: str) -> Expression:
    """Return the field `name` of a ROW. Raises SqlError if there is none."""
    if not isinstance(value.type, Row):
        raise SqlError(f"{flink(value.type)} has no field {name}", hint="only a ROW has fields")
    if name not in value.type.names:
        raise SqlError(
            f'the ROW has no field "{name}"',
            detail=f"its fields are {', '.join(value.type.names)}",
            hint=did_you_mean(name, value.type.names),
        )
    place = value.type.names.index(name)
    return Call(f".{name}", (value,), value.type.types[place], f"struct_extract({{0}}, {_text(name)})")


def _text(name: str) -> str:
    return literals.quoted(name).replace("{", "{{").replace("}", "}}")


def _dotted(node: exp.Expr) -> list[exp.Identifier] | None:
    """The parts of a.b.c.d.e, which is more than a column holds; None for a field of another expression."""
    parts: list[exp.Identifier] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        parts.insert(0, node.expression)
        node = node.this
    if isinstance(node, exp.Column):
        return [*(p for p in node.parts if isinstance(p, exp.Identifier)), *parts]
    return [node, *parts] if isinstance(node, exp.Identifier) else None


def _chain(name: str) -> Callable[[_Compiler, exp.Expr], Expression]:
    """An operator that is grouped from the left: its terms are compiled side by side, however many there are."""
    return lambda compiler, node: chained(name, compiler.all(terms(node)), compiler.context)


def _binary(name: str) -> Callable[[_Compiler, exp.Expr], Expression]:
    return lambda compiler, node: compiler.apply(name, node.this, node.expression)


def _bare(name: str) -> Callable[[_Compiler, exp.Expr], Expression]:
    return lambda compiler, node: applied(name, (), compiler.context)


_COMPILERS: Mapping[type[exp.Expr], Callable[[_Compiler, exp.Expr], Expression]] = {
    exp.Column: _Compiler.column,
    exp.Dot: _Compiler.column,
    exp.Literal: _Compiler.literal,
    exp.Concat: _Compiler.adjacent,
    exp.UnicodeString: lambda compiler, node: literals.unicode(node),
    exp.HexString: lambda compiler, node: literals.binary(node.name),
    exp.Boolean: lambda compiler, node: literals.boolean(bool(node.this)),
    exp.Null: lambda compiler, node: literals.null(),
    exp.Interval: lambda compiler, node: literals.literal_interval(node),
    exp.Paren: lambda compiler, node: compiler.compile(node.this),
    exp.Neg: _Compiler.negative,
    exp.Case: _Compiler.case,
    exp.Cast: _Compiler.cast,
    exp.TryCast: _Compiler.cast,
    exp.Anonymous: _Compiler.call,
    exp.Is: _Compiler.is_,
    exp.Between: _Compiler.between,
    exp.In: _Compiler.in_,
    exp.Like: _Compiler.like,
    exp.SimilarTo: _Compiler.like,
    exp.Escape: _Compiler.escape,
    exp.Bracket: _Compiler.bracket,
    exp.Not: lambda compiler, node: compiler.apply("NOT", node.this),
    exp.Array: lambda compiler, node: compiler.apply("ARRAY[]", *node.expressions),
    exp.Tuple: lambda compiler, node: compiler.apply("ROW", *node.expressions),
    exp.CurrentTimestamp: _bare("CURRENT_TIMESTAMP"),
    exp.CurrentDate: _bare("CURRENT_DATE"),
    exp.CurrentTime: _bare("CURRENT_TIME"),
    exp.Add: _chain("+"),
    exp.Sub: _chain("-"),
    exp.Mul: _chain("*"),
    exp.Div: _binary("/"),
    exp.Mod: _binary("%"),
    exp.EQ: _binary("="),
    exp.NEQ: _binary("<>"),
    exp.LT: _binary("<"),
    exp.LTE: _binary("<="),
    exp.GT: _binary(">"),
    exp.GTE: _binary(">="),
    exp.NullSafeEQ: _binary("IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: _binary("IS DISTINCT FROM"),
    exp.And: _chain("AND"),
    exp.Or: _chain("OR"),
    exp.DPipe: _chain("||"),
}
