"""The context of the resolution of a query: the catalog, the settings, where mistakes go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import Place
from service.plan.table import Table
from service.sql.compiler.compile import compile_expression
from service.sql.compiler.constants import check_constants
from service.sql.errors import Mistakes, SqlError
from service.sql.expressions.context import Context
from service.sql.parse.statements import CreateTable
from service.sql.scope import INTERNAL, Scope


class QueryRejected(Exception):
    """A query has mistakes, which are noted already: there is no plan of it."""


@dataclass(frozen=True, slots=True)
class View:
    """A query with a name; `columns` rename its columns, if given."""

    name: str
    columns: tuple[str, ...]
    query: exp.Expr


@dataclass(frozen=True, slots=True)
class TemporalFunction:
    """A function of time that gives the rows of `table` as they were then: of each `key` the last one by `time`, both
    by their places among the columns that `*` stands for."""

    name: str
    table: exp.Table
    key: tuple[int, ...]
    time: int


@dataclass(slots=True)
class Catalog:
    """The tables and views declared so far; None stands for one whose declaration has mistakes. `declared` has each
    table as written: a hint overrides its options, LIKE repeats it."""

    entries: dict[str, Table | View | TemporalFunction | None] = field(default_factory=dict)
    declared: dict[str, CreateTable] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that is declared."""
        return tuple(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitSettings:
    """'table.exec.emit...': whether windows answer early and late, how often, and for how long rows may be late; all in
    ms, None by default."""

    early: bool = False
    early_delay: int | None = None
    late: bool = False
    late_delay: int | None = None
    lateness: int | None = None


@dataclass(frozen=True, slots=True)
class ResolveContext:
    """`ttl` and `idle_timeout`, in ms, are those of 'table.exec.state.ttl' and 'table.exec.source.idle-timeout'; `ctes`
    are the WITH queries in force, by name. `drops_nulls` and `trims_text` say how a sink enforces its types,
    `nanos_refused` whether a time with more digits than are kept is a mistake, `waits_for_tables` whether temporal
    joins in processing time answer nothing before their tables are read."""

    catalog: Catalog
    mistakes: Mistakes
    zone: str = "UTC"
    ttl: int = 0
    idle_timeout: int = 0
    emit: EmitSettings = EmitSettings()
    deduplicate_cdc: bool = False
    drops_nulls: bool = False
    trims_text: bool = False
    nanos_refused: bool = False
    waits_for_tables: bool = True
    around: tuple[str, ...] = ()
    """The names of tables around a subquery, which the queries inside it cannot read."""
    ctes: Mapping[str, CommonTable] = field(default_factory=dict)
    opened: tuple[str, ...] = ()

    @property
    def context(self) -> Context:
        """The part of it that expressions need."""
        return Context(self.mistakes, self.zone, self.nanos_refused)

    def place(self, node: exp.Expr | int | None) -> Place:
        """Return where in the file `node` stands."""
        return self.mistakes.place(node)

    def compile(self, node: exp.Expr, scope: Scope) -> Expression | None:
        """Return the expression of `node` over `scope`; None, with the mistake noted, if it has one."""
        with self.mistakes.collecting(node):
            try:
                compiled = compile_expression(node, scope, self.context)
            except SqlError as error:
                raise self.of_correlation(node, scope) or error from error
            check_constants(compiled)
            return _shown(compiled, scope)
        return None

    def of_correlation(self, node: exp.Expr, *scopes: Scope) -> SqlError | None:
        """Return the mistake of an expression that reads a table of an outer query, not of `scopes`, or None."""
        for each in node.find_all(exp.Column):
            name = each.parts[0].name
            if len(each.parts) > 1 and name in self.around and not any(name in s.qualifiers for s in scopes):
                return SqlError(
                    f'"{name}" belongs to an outer query, and cannot be read here',
                    detail="a subquery reads columns of the query directly around it, in its own SELECT, WHERE, GROUP"
                    " BY and HAVING; not in FROM, ON, WITH or UNION",
                    hint="select the columns that are compared, and compare them in WHERE of the subquery; or join"
                    " LATERAL (SELECT ...)",
                    at=each,
                )
        return None

    def give_up(self, error: SqlError, at: exp.Expr | int | None = None) -> QueryRejected:
        """Note `error` and abandon the query."""
        self.mistakes.add_error(error, at)
        return QueryRejected()

    @contextmanager
    def all_or_nothing(self, further: Callable[[], None] | None = None) -> Iterator[None]:
        """Raise QueryRejected at the end of a body that has noted a mistake.

        So a body goes on past its first mistake and lists all of them, and what follows it can rely on what it found.
        `further` is called before, to note mistakes of what the body has not looked at.
        """
        before = self.mistakes.noted
        yield
        if self.mistakes.noted > before:
            if further is not None:
                further()
            raise QueryRejected

    def inside(self, name: str) -> ResolveContext:
        """Return the session in which the view `name` is resolved: its own names only."""
        return replace(self, ctes={}, around=(), opened=(*self.opened, name))


def _shown(expression: Expression, scope: Scope) -> Expression:
    """`expression` with columns that the resolver added under the names that a person should see."""
    match expression:
        case Column(index=index, name=name) if name.startswith(INTERNAL):
            return replace(expression, name=scope.field(index).name)
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(_shown(a, scope) for a in arguments))
        case _:
            return expression


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A WITH query, and the session in which it was written."""

    columns: tuple[str, ...]
    query: exp.Expr
    session: ResolveContext


def not_yet(what: str, at: exp.Expr | int | None, hint: str = "") -> SqlError:
    """Return the mistake of a construct that is part of the dialect and does not run yet."""
    return SqlError(f"{what} is not supported yet", hint=hint, at=at)
