"""Temporal table functions: LATERAL TABLE(Rates(o.ts)), where Rates is declared over a table of all versions.

    CREATE TEMPORARY TABLE FUNCTION Rates AS RatesHistory PRIMARY KEY (currency) TIME ATTRIBUTE (ts);

Flink declares them in Java; here it is a statement. Each row of the table is a version of the row of its key.
"""

from __future__ import annotations

from sqlglot import exp

from service.plan.nodes import Mode
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.sql.errors import SqlError, did_you_mean
from service.sql.parse.statements import CreateTemporalFunction, Name
from service.sql.resolve.context import ResolveContext, TemporalFunction
from service.sql.resolve.from_clause import aliased, resolve_relation
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import call_name
from service.sql.resolve.versions import NoVersions, VersionStream, version_stream
from service.sql.resolve.windows import not_a_time_attribute

_HINT = "CREATE TEMPORARY TABLE FUNCTION <name> AS <table> PRIMARY KEY (<columns>) TIME ATTRIBUTE (<column>)"


def function_call(source: exp.Expr) -> exp.Anonymous | None:
    """Return the call f(time) in LATERAL TABLE(f(time))."""
    if not isinstance(source, exp.Lateral) or not isinstance(source.this, exp.Anonymous):
        return None
    inside = source.this.expressions
    if call_name(source.this) != "TABLE" or len(inside) != 1 or not isinstance(inside[0], exp.Anonymous):
        return None
    return inside[0]


def read_temporal_function(statement: CreateTemporalFunction, session: ResolveContext) -> TemporalFunction:
    """Return the function that a statement declares; raises QueryRejected, its mistakes noted, if it has any."""
    identifier = exp.Identifier(this=statement.table.text, quoted=True)
    identifier.meta["start"] = statement.table.at
    table = exp.Table(this=identifier)
    table.meta["start"] = statement.table.at
    relation = resolve_relation(table, session)
    try:
        key = tuple(_place(relation, name) for name in statement.key)
        time = _place(relation, statement.time)
        field = relation.scope.field(relation.scope.starred()[time])
        if field.time is TimeKind.NONE:
            raise not_a_time_attribute(field, "a temporal table function", statement.time.at)
        function = TemporalFunction(statement.name.text, table, key, time)
        function_versions(function, relation)
    except SqlError as error:
        raise session.give_up(error, statement.key[0].at) from error
    return function


_OF_ROWS = {
    **dict.fromkeys(
        ("STRING_SPLIT", "SPLIT", "SPLIT_TO_TABLE", "REGEXP_SPLIT_TO_TABLE"),
        "CROSS JOIN UNNEST(SPLIT(text, ',')) AS t (word)",
    ),
    **dict.fromkeys(("UNNEST", "EXPLODE", "FLATTEN", "POSEXPLODE"), "CROSS JOIN UNNEST(array) AS t (element)"),
    "GENERATE_SERIES": "FROM (VALUES (1), (2)) AS t (n)",
}
"""Table functions that other dialects have, or that people write for Flink, and what to write instead."""


def declared_function(call: exp.Anonymous, session: ResolveContext) -> TemporalFunction:
    """Return the function that `call` names."""
    entry = session.catalog.entries.get(call.name)
    if isinstance(entry, TemporalFunction):
        return entry
    known = [name for name, each in session.catalog.entries.items() if isinstance(each, TemporalFunction)]
    if call.name.upper() in _OF_ROWS:
        raise session.give_up(
            SqlError(
                f"the table function {call.name} does not exist", hint=f"write {_OF_ROWS[call.name.upper()]}", at=call
            )
        )
    raise session.give_up(
        SqlError(
            f'the temporal table function "{call.name}" does not exist',
            detail=f"declared above: {', '.join(known)}" if known else "none is declared above",
            hint=did_you_mean(call.name, known) or _HINT,
            at=call,
        )
    )


def resolve_function(source: exp.Expr, call: exp.Anonymous, session: ResolveContext) -> Relation:
    """Return the table of the function that `call` names, under the alias of `source`."""
    function = declared_function(call, session)
    return aliased(resolve_relation(function.table, session.inside(function.name)), source, session, function.name)


def function_versions(function: TemporalFunction, relation: Relation) -> tuple[VersionStream, int]:
    """Return the versions of `relation`, the function's table, and the position of their time. Raises SqlError if it
    has none, or has them by another key than the function's."""
    listed = relation.scope.starred()
    key, time = tuple(listed[k] for k in function.key), listed[function.time]
    if mode(relation.node) is Mode.APPEND:
        return VersionStream(relation.node, key), time
    try:
        stream = version_stream(relation.node)
    except NoVersions as error:
        raise SqlError(f'"{function.table.name}" has no versions', detail=error.primary, hint=error.hint) from error
    if set(stream.key) != set(key):
        known = ", ".join(relation.scope.field(k).name for k in stream.key)
        raise SqlError(
            "a table whose rows change has versions by its own primary key alone",
            detail=f"that of {function.table.name} is ({known})",
            hint=f"write PRIMARY KEY ({known})",
        )
    return stream, time


def _place(relation: Relation, name: Name) -> int:
    names = [relation.scope.field(i).name for i in relation.scope.starred()]
    if name.text in names:
        return names.index(name.text)
    raise SqlError(
        f'column "{name.text}" does not exist',
        detail=f"there are {', '.join(names)}",
        hint=did_you_mean(name.text, names),
        at=name.at,
    )
