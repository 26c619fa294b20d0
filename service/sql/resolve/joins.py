"""FROM with joins, left to right: each is a regular join, or an interval join where times are bounded both ways.

Conditions of WHERE that compare two inputs belong to the join that brings them together, as long as every join is
INNER or LEFT: there, filtering before and after give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from service.plan.nodes import JoinKind
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.from_clause import resolve_relation
from service.sql.resolve.join_conditions import (
    sort_conditions,
)
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import conjuncts, has_query, positions
from service.sql.resolve.table_hints import state_ttls
from service.sql.resolve.temporal_joins import is_temporal, resolve_versioned, temporal_join
from service.sql.resolve.unnest import single_row, unnested
from service.sql.scope import Scope


def resolve_from(select: exp.Select, session: ResolveContext) -> tuple[Relation, list[exp.Expr]]:
    """The relation of FROM, and the conjuncts of WHERE that are still to be filtered by."""
    where = list(conjuncts(select.args["where"].this)) if select.args.get("where") else []
    joins: list[exp.Join] = select.args.get("joins") or []
    sources = [select.args["from_"].this, *(j.this for j in joins)]
    relations = _all(sources, session)
    _check_names(relations, sources, session)
    qualifiers = [q for r in relations for q in r.scope.qualifiers]
    ttls = state_ttls(select, qualifiers, session)
    movable = all(_kind(j, session) in (JoinKind.INNER, JoinKind.LEFT) for j in joins)
    joined = relations[0]
    left_ttl = _ttl(joined, ttls, session)
    for join, right in zip(joins, relations[1:], strict=True):
        kind = _kind(join, session)
        if isinstance(join.this, exp.Unnest):
            joined = _unnested(joined, join, join.this, kind, session)
            continue
        conditions = _on(join, joined, right, session)
        if movable and kind is JoinKind.INNER:
            scope, width = joined.scope.beside(right.scope), len(joined.scope)
            taken = [c for c in where if not has_query(c) and _spans(positions(c, scope), width)]
            where = [c for c in where if not any(c is t for t in taken)]
            conditions += taken
        joined = _join(joined, right, kind, conditions, (left_ttl, _ttl(right, ttls, session)), join, session)
        left_ttl = session.ttl
    return joined, where


def _all(sources: Sequence[exp.Expr], session: ResolveContext) -> list[Relation]:
    found: list[Relation] = []
    for place, source in enumerate(sources):
        if isinstance(source, exp.Unnest):
            # It reads what is left of it, once that is joined; the name of its columns is known before.
            found.append(single_row() if place else _first_unnested(source, session))
            continue
        versioned = place > 0 and is_temporal(source)
        try:
            found.append(resolve_versioned(source, session) if versioned else resolve_relation(source, session))
        except QueryRejected:
            continue
    if len(found) < len(sources):
        raise QueryRejected
    return found


def _first_unnested(unnest: exp.Unnest, session: ResolveContext) -> Relation:
    return unnested(single_row(), unnest, outer=False, session=session)


def _unnested(left: Relation, join: exp.Join, unnest: exp.Unnest, kind: JoinKind, session: ResolveContext) -> Relation:
    """`left` beside the elements of one of its columns."""
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise session.give_up(SqlError(f"UNNEST takes no {kind.value.upper()} JOIN", at=join))
    on = join.args.get("on")
    if join.args.get("using") or (on is not None and not (isinstance(on, exp.Boolean) and on.this)):
        raise session.give_up(
            SqlError("UNNEST is joined ON TRUE", hint="write the condition into WHERE", at=on or join)
        )
    return unnested(left, unnest, outer=kind is JoinKind.LEFT, session=session)


def _check_names(relations: Sequence[Relation], sources: Sequence[exp.Expr], session: ResolveContext) -> None:
    seen: set[str] = set()
    for relation, source in zip(relations, sources, strict=True):
        for qualifier in relation.scope.qualifiers:
            if qualifier in seen:
                raise session.give_up(
                    SqlError(
                        f'the name "{qualifier}" stands for two tables of the query',
                        hint=f"give one of them an alias: {qualifier} AS other",
                        at=source,
                    )
                )
            seen.add(qualifier)


def _ttl(relation: Relation, ttls: Mapping[str, int], session: ResolveContext) -> int:
    named = [ttls[q] for q in relation.scope.qualifiers if q in ttls]
    return named[0] if named else session.ttl


def _spans(found: set[int] | None, width: int) -> bool:
    """Whether a condition reads columns of both inputs, and no others."""
    return found is not None and any(i < width for i in found) and any(i >= width for i in found)


def _kind(join: exp.Join, session: ResolveContext) -> JoinKind:
    if join.args.get("method"):
        raise session.give_up(not_yet(f"{join.args['method']} JOIN", join))
    side, kind = join.args.get("side") or "", join.args.get("kind") or ""
    if kind in ("SEMI", "ANTI"):
        raise session.give_up(not_yet(f"{kind} JOIN", join, "write WHERE [NOT] EXISTS (SELECT ...)"))
    if isinstance(join.this, exp.Lateral) and not is_temporal(join.this):
        raise session.give_up(not_yet(type(join.this).__name__.upper(), join))
    if side and not join.args.get("on") and not join.args.get("using"):
        raise session.give_up(
            SqlError(f"{side.upper()} JOIN needs a condition", hint="write ON or USING", at=join.this)
        )
    return JoinKind(side.lower()) if side else JoinKind.INNER


def _on(join: exp.Join, left: Relation, right: Relation, session: ResolveContext) -> list[exp.Expr]:
    """The conjuncts of ON, or the equations of USING."""
    if join.args.get("on"):
        return list(conjuncts(join.args["on"]))
    found: list[exp.Expr] = []
    for name in join.args.get("using") or ():
        pair = []
        for side in (left, right):
            with session.mistakes.collecting(name):
                index = side.scope.lookup([name.name]).index
                pair.append(side.scope.columns[index].qualifier)
        if len(pair) == 2:
            sides = [
                exp.Column(this=name.copy(), table=exp.Identifier(this=qualifier, quoted=True)) for qualifier in pair
            ]
            found.append(exp.EQ(this=sides[0], expression=sides[1]))
    return found


def _join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    nodes: list[exp.Expr],
    ttls: tuple[int, int],
    join: exp.Join,
    session: ResolveContext,
) -> Relation:
    using = frozenset(n.name for n in join.args.get("using") or ())
    if using and kind in (JoinKind.RIGHT, JoinKind.FULL):
        raise session.give_up(not_yet(f"{kind.value.upper()} JOIN with USING", join, "write ON"))
    if is_temporal(join.this):
        joined = temporal_join(left, right, kind, nodes, ttls[0], join.this, session)
        return _shown_once(joined, len(joined.scope) - len(right.scope), using) if using else joined
    found = sort_conditions(nodes, left, right, session)
    joined = join_of(left, right, kind, found, ttls, join.this, session)
    return _shown_once(joined, len(joined.scope) - len(right.scope), using) if using else joined


def _shown_once(joined: Relation, width: int, using: frozenset[str]) -> Relation:
    """The columns of USING are shown once, those of the left input."""
    columns = tuple(
        replace(c, listed=False) if i >= width and c.name in using else c for i, c in enumerate(joined.scope.columns)
    )
    return replace(joined, scope=Scope(columns))
