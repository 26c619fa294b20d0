"""Hints: OPTIONS behind a table's name, STATE_TTL behind SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from service.plan.table import Table
from service.sql.errors import SqlError, did_you_mean, offset_of
from service.sql.options.connector import read_connector
from service.sql.options.known import duration
from service.sql.parse.statement_grammar import hint_options
from service.sql.resolve.context import QueryRejected, ResolveContext

_OF_BATCHES = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
"""Hints that Flink, too, passes over in a stream."""

_OF_JOINS = ("LEADING", "SKEW")
"""Hints that say how tables are joined."""

_RETRIES = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")
"""Options of LOOKUP that have a row which found none wait for another try."""

_LOOKUP = ("table", "async", "output-mode", "capacity", "timeout", "shuffle", *_RETRIES)


def with_options(table: Table, node: exp.Table, session: ResolveContext) -> Table:
    """Return `table` with the options of an OPTIONS hint in place of its own."""
    hints = node.meta.get("hints")
    if not hints:
        return table
    try:
        options = hint_options(hints[0])
    except SqlError as error:
        raise session.give_up(error, node) from error
    declared = session.catalog.declared[table.name].options
    overridden = {o.key: o for o in (*declared, *options)}
    connector = read_connector(overridden.values(), session.mistakes, offset_of(node) or 0, session.idle_timeout)
    if connector is None:
        raise QueryRejected
    return replace(table, connector=connector)


def leading(select: exp.Select) -> exp.Expr | None:
    """Return the hint /*+ LEADING(a, b) */ of a query, if it has one."""
    hint = select.args.get("hint")
    return next((call for call in (hint.expressions if hint else ()) if call.name.upper() == "LEADING"), None)


def state_ttls(
    select: exp.Select, qualifiers: Iterable[str], session: ResolveContext, *, inner: bool = False
) -> Mapping[str, int]:
    """Return how long state is kept, in ms, by the alias that /*+ STATE_TTL('alias' = '1d') */ names.

    A part of a query, which is `inner`, knows some of its names only.
    """
    hint = select.args.get("hint")
    known = tuple(qualifiers)
    found: dict[str, int] = {}
    for call in hint.expressions if hint else ():
        if call.name.upper() in _OF_JOINS:
            continue
        if call.name.upper() in _OF_BATCHES:
            if inner:
                continue
            session.mistakes.note(
                f"the hint {call.name} has no effect", detail="it is one for joins of batches", at=call
            )
            continue
        if call.name.upper() == "LOOKUP":
            if not inner:
                _lookup(call, known, session)
            continue
        if call.name.upper() != "STATE_TTL":
            session.mistakes.add(
                f"the hint {call.name} has no meaning here",
                detail="SELECT takes STATE_TTL('alias' = '1d', ...), LEADING(alias, ...) and SKEW('alias', 'key', ...)",
                hint=did_you_mean(call.name, ["STATE_TTL", *_OF_JOINS]),
                at=call,
            )
            continue
        for pair in call.expressions:
            if inner and isinstance(pair, exp.EQ) and pair.left.name not in known:
                continue
            with session.mistakes.collecting(pair):
                name, value = _pair(pair, known)
                found[name] = value
    return found


def longest_ttl(branches: Iterable[exp.Expr], session: ResolveContext) -> int:
    """Return how long UNION, INTERSECT and EXCEPT keep rows, in ms, 0 = forever: as long as the longest that STATE_TTL
    says in one of their queries, which are resolved, and as long as the session says where one has no hint."""
    ttls = [ttl for branch in branches for ttl in _ttls_in(branch, session)]
    return 0 if 0 in ttls else max(ttls)


def _ttls_in(query: exp.Expr, session: ResolveContext) -> list[int]:
    """What STATE_TTL says in a query, or in each of those that it consists of."""
    query = query.unnest()
    if isinstance(query, exp.SetOperation):
        return [ttl for each in (query.left, query.right) for ttl in _ttls_in(each, session)]
    hint = query.args.get("hint") if isinstance(query, exp.Select) else None
    calls = [call for call in (hint.expressions if hint else ()) if call.name.upper() == "STATE_TTL"]
    return [duration(pair.right.name) for call in calls for pair in call.expressions] or [session.ttl]


def _lookup(call: exp.Expr, known: tuple[str, ...], session: ResolveContext) -> None:
    """Flink's hint for lookup joins: keys of a batch are always asked for together, and rows of a key meet."""
    for pair in call.expressions:
        name = pair.left.name if isinstance(pair, exp.EQ) else ""
        if name not in _LOOKUP:
            hint = did_you_mean(name, _LOOKUP)
            session.mistakes.add(f'LOOKUP has no option "{name}"', detail="it is for lookup joins", hint=hint, at=pair)
        elif name == "table" and pair.right.name not in known:
            session.mistakes.add(
                f'LOOKUP names "{pair.right.name}", which the query does not join',
                detail=f"it reads {', '.join(known)}",
                hint=did_you_mean(pair.right.name, known),
                at=pair,
            )
        elif name in _RETRIES:
            session.mistakes.add(
                "a lookup that finds no row is not tried again",
                detail="a row meets what the table holds when it comes",
                hint="leave the option out; a database that does not answer is waited for in any case",
                at=pair,
            )
    session.mistakes.note(
        "the hint LOOKUP has no effect", detail="the keys of a batch are always asked for together", at=call
    )


def _pair(pair: exp.Expr, known: tuple[str, ...]) -> tuple[str, int]:
    if not isinstance(pair, exp.EQ) or not isinstance(pair.right, exp.Literal):
        raise SqlError("a time to live is written 'alias' = '1d'")
    name = pair.left.name
    if name not in known:
        raise SqlError(
            f'STATE_TTL names "{name}", which the query does not read',
            detail=f"it reads {', '.join(known)}",
            hint=did_you_mean(name, known),
        )
    try:
        return name, duration(pair.right.name)
    except ValueError as error:
        raise SqlError(
            f"'{pair.right.name}' is not a time to live", detail=f"it takes {error}", at=pair.right
        ) from error
