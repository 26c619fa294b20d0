"""A row of the function table: the accepted arguments, the result type, the DuckDB text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan import types
from service.plan.expressions import Call, Expression, Literal
from service.plan.types import Array, DataType, Decimal, Interval, Map, Row, Time, Timestamp, TimestampLtz
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.sharing import shared
from service.sql.expressions.type_rules import is_approximate, is_binary, is_integer, is_moment, is_numeric, is_text

Arguments = tuple[Expression, ...]
Result = DataType | Callable[[Sequence[DataType]], DataType]
Build = Callable[[str, Arguments, Context], Expression]

# Each kind of parameter: which types it takes, and to which it converts them (None: they stay as they are).
KINDS: Mapping[str, tuple[Callable[[DataType], bool], DataType | None]] = {
    "ANY": (lambda t: True, None),
    "STRING": (is_text, None),
    "BYTES": (is_binary, None),
    "BOOLEAN": (lambda t: t == types.BOOLEAN, None),
    "INT": (is_integer, types.INT),
    "BIGINT": (is_integer, types.BIGINT),
    "INTEGER": (is_integer, None),
    "DECIMAL": (lambda t: isinstance(t, Decimal), None),
    "EXACT": (lambda t: is_integer(t) or isinstance(t, Decimal), None),
    "APPROXIMATE": (is_approximate, None),
    "DOUBLE": (is_numeric, types.DOUBLE),
    "NUMERIC": (is_numeric, None),
    "DATE": (lambda t: t == types.DATE, None),
    "TIME": (lambda t: isinstance(t, Time), None),
    "TIMESTAMP": (lambda t: isinstance(t, Timestamp), None),
    "TIMESTAMP_LTZ": (lambda t: isinstance(t, TimestampLtz), None),
    "MOMENT": (is_moment, None),
    "INTERVAL": (lambda t: isinstance(t, Interval), None),
    "MONTHS": (lambda t: isinstance(t, Interval) and t.months, None),
    "ARRAY": (lambda t: isinstance(t, Array), None),
    "MAP": (lambda t: isinstance(t, Map), None),
    "ROW": (lambda t: isinstance(t, Row), None),
}


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function. `parameters` are names of KINDS; a last one with `*` stands for any number more.

    `template` is DuckDB text, or a function that makes the whole expression from arguments that fit. `version` is
    raised by a mend that gives another value where there was one: state made from the value before would be wrong.
    """

    parameters: tuple[str, ...]
    result: Result
    template: str | Build
    deterministic: bool = True
    version: int = 1

    def takes(self, given: Sequence[DataType]) -> bool:
        """Return whether arguments of these types fit."""
        kinds = self.kinds(len(given))
        return kinds is not None and all(_fits(kind, t) for kind, t in zip(kinds, given, strict=True))

    def kinds(self, count: int) -> tuple[str, ...] | None:
        """Return the kind of each of `count` arguments, or None if that number is not allowed."""
        if self.parameters and self.parameters[-1].endswith("*"):
            fixed, more = self.parameters[:-1], self.parameters[-1][:-1]
            return fixed + (more,) * (count - len(fixed)) if count >= len(fixed) else None
        return self.parameters if count == len(self.parameters) else None

    def call(self, name: str, arguments: Arguments, context: Context) -> Expression:
        """Return the function applied to arguments that it takes."""
        kinds = self.kinds(len(arguments)) or ()
        fitting = tuple(_converted(a, kind, context) for a, kind in zip(arguments, kinds, strict=True))
        if callable(self.template):
            made = self.template(name, fitting, context)
            return shared(of_version(_with_constants(made, fitting), name, self.version))
        result = self.result([a.type for a in fitting]) if callable(self.result) else self.result
        made = Call(name, fitting, result, self.template, self.deterministic)
        return shared(of_version(made, name, self.version))


def of_version(made: Expression, name: str, version: int) -> Expression:
    """Return what the function `name` has `made`, noting its version if that was raised."""
    if version == 1 or not isinstance(made, Call):
        return made
    return replace(made, versions=(*made.versions, (name, version)))


def _with_constants(made: Expression, given: Arguments) -> Expression:
    """`made`, which tells the constants of its call that went into its template and are no arguments of it."""
    if not isinstance(made, Call) or any(made is each for each in given):
        return made
    more = tuple(each for each in given if isinstance(each, Literal) and not any(each is a for a in made.arguments))
    return replace(made, constants=(*made.constants, *more)) if more else made


def _fits(kind: str, type_: DataType) -> bool:
    if type_ == types.NULL:
        # Of an array, a map, a row or an interval NULL does not say what it is made of.
        return kind not in ("ARRAY", "MAP", "ROW", "INTERVAL", "MONTHS")
    return KINDS[kind][0](type_)


def _converted(argument: Expression, kind: str, context: Context) -> Expression:
    to = KINDS[kind][1]
    if to is None and argument.type == types.NULL:
        # An untyped NULL takes the type that the parameter stands for, so that DuckDB finds its function.
        to = _NULL_AS.get(kind)
    return argument if to is None else cast(argument, to, zone=context.zone)


_NULL_AS: Mapping[str, DataType] = {
    "STRING": types.STRING,
    "BYTES": types.BYTES,
    "BOOLEAN": types.BOOLEAN,
    "INTEGER": types.INT,
    "NUMERIC": types.INT,
    "EXACT": types.INT,
    "DATE": types.DATE,
    "TIMESTAMP": Timestamp(3),
    "TIMESTAMP_LTZ": TimestampLtz(3),
    "MOMENT": Timestamp(3),
}


def plain(parameters: str, result: Result, template: str, *, deterministic: bool = True, version: int = 1) -> Overload:
    """Return a row of the table whose DuckDB text is fixed: plain("STRING, INT", STRING, "left({0}, {1})")."""
    return Overload(_split(parameters), result, template, deterministic, version)


def built(parameters: str, build: Build, *, version: int = 1) -> Overload:
    """Return a row of the table whose expression depends on the arguments. Of these, constants that the expression does
    not have as arguments are noted by themselves; what else its text depends on, `build` gives to `Call.constants`."""
    return Overload(_split(parameters), types.NULL, build, version=version)


def _split(parameters: str) -> tuple[str, ...]:
    return tuple(p.strip() for p in parameters.split(",") if p.strip())


def same(given: Sequence[DataType]) -> DataType:
    """Return the type of the first argument."""
    return given[0]


@dataclass(frozen=True, slots=True)
class Form:
    """A call as it was parsed, for functions whose arguments are not all expressions: units, clauses, patterns."""

    name: str
    node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    keywords: Mapping[str, exp.Expr]
    compile: Callable[[exp.Expr], Expression]
    context: Context


Special = Callable[[Form], Expression]


def at_version(version: int, special: Special) -> Special:
    """Return a function with words of its own whose version was raised: see `Overload`."""
    return lambda form: of_version(special(form), form.name, version)


Table = Mapping[str, tuple[Overload, ...]]


def constant_text(expression: Expression) -> str | None:
    """Return the text of a string constant, or None for any other expression."""
    if isinstance(expression, Literal) and is_text(expression.type) and expression.duckdb.startswith("'"):
        return expression.duckdb[1:-1].replace("''", "'")
    return None


def is_constant(expression: Expression) -> bool:
    """Return whether `expression` is a constant."""
    return isinstance(expression, Literal)


def constant_integer(expression: Expression) -> int | None:
    """Return the value of an integer constant, or None for any other expression."""
    if isinstance(expression, Literal) and is_integer(expression.type):
        text = expression.text
        return int(text) if text.lstrip("-").isdigit() else None
    return None


def template_text(text: str) -> str:
    """Return `text` as a string constant inside a template."""
    return "'" + text.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"
