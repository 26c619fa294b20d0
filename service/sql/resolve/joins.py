"""FROM with joins, left to right: each is a regular join, or an interval join where times are bounded both ways.

Conditions of WHERE that compare two inputs belong to the join that brings them together, as long as every join is
INNER or LEFT: there, filtering before and after give the same rows. So it is with a query in ON of an INNER join, by
which the joined rows are filtered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from service.plan.expressions import Column
from service.plan.nodes import JoinKind
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.from_clause import aliased, resolve_relation
from service.sql.resolve.join_conditions import checked_condition, sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.join_order import by_leading
from service.sql.resolve.relation import Relation, filtered, visible
from service.sql.resolve.skew import Skew, check_taken, skews, spread_all
from service.sql.resolve.syntax import conjuncts, has_query, is_lateral, positions
from service.sql.resolve.table_hints import leading, state_ttls
from service.sql.resolve.temporal_joins import is_temporal, resolve_versioned, temporal_join
from service.sql.resolve.unnest import single_row, unnested
from service.sql.resolve.using import equations, merged_columns, reordered, shown_once


class From(NamedTuple):
    """The relation of FROM, the conjuncts of WHERE that are still to be filtered by, and the hints that no join of FROM
    has taken: one with a query of WHERE may."""

    relation: Relation
    where: list[exp.Expr]
    hot: list[Skew]


def resolve_from(select: exp.Select, session: ResolveContext) -> From:
    """Return what FROM says, with the conditions of WHERE that belong to its joins."""
    where = list(conjuncts(select.args["where"].this)) if select.args.get("where") else []
    joins: list[exp.Join] = select.args.get("joins") or []
    first = select.args["from_"].this
    wanted = leading(select)
    led = None if wanted is None else by_leading(first, joins, wanted, session)
    if led is None:
        return _chain(first, joins, where, select, session)
    where = [c for condition in led.conditions for c in conjuncts(condition)] + where
    joined, where, hot = _chain(led.first, led.joins, where, select, session)
    written = [i for name in led.written for i, c in enumerate(joined.scope) if c.qualifier == name]
    hidden = [i for i in range(len(joined.scope)) if i not in set(written)]
    return From(reordered(joined, [*written, *hidden], session.place(select)), where, hot)


def _chain(
    first: exp.Expr,
    joins: Sequence[exp.Join],
    where: list[exp.Expr],
    select: exp.Select,
    session: ResolveContext,
    *,
    inner: bool = False,
) -> From:
    """Tables that are joined from left to right, and the conditions of `where` that no join has taken.

    Hints are those of `select`, of which this may be an `inner` part.
    """
    sources = [first, *(j.this for j in joins)]
    # Queries nest, so the modules do.
    from service.sql.resolve.lateral_queries import lateral_join
    from service.sql.resolve.semi_joins import resolve_query_condition

    relations = _all(sources, select, session)
    _check_names(relations, sources, session)
    qualifiers = [q for r in relations for q in r.scope.qualifiers]
    ttls = state_ttls(select, qualifiers, session, inner=inner)
    hot = [] if inner else skews(select, qualifiers, session)
    movable = all(_kind(j, session) in (JoinKind.INNER, JoinKind.LEFT) for j in joins)
    joined = relations[0]
    left_ttl = _ttl(joined, ttls, session)
    for join, right in zip(joins, relations[1:], strict=True):
        kind = _kind(join, session)
        if isinstance(join.this, exp.Unnest):
            joined = _unnested(joined, join, join.this, kind, session)
            continue
        if is_lateral(join.this):
            joined = lateral_join(joined, join, kind, ttls, session)
            left_ttl = session.ttl
            continue
        conditions = list(conjuncts(join.args.get("on")))
        if movable and kind is JoinKind.INNER:
            scope, width = joined.scope.beside(right.scope), len(joined.scope)
            taken = [c for c in where if not has_query(c) and _spans(positions(c, scope), width)]
            where = [c for c in where if not any(c is t for t in taken)]
            conditions += taken
        kept = (left_ttl, _ttl(right, ttls, session))
        asking = [c for c in conditions if has_query(c)]
        _check_asked(asking, kind, session)
        conditions = [c for c in conditions if not has_query(c)]
        joined = _join(joined, right, kind, conditions, kept, join, hot, session)
        for condition in asking:
            joined = resolve_query_condition(joined, condition, ttls, hot, session)
        left_ttl = session.ttl
    if not any(map(has_query, where)):
        check_taken(hot, session)
    return From(joined, where, hot)


def _check_asked(asking: Sequence[exp.Expr], kind: JoinKind, session: ResolveContext) -> None:
    """Raise QueryRejected for conditions with a query in ON that pad rows: joined rows can be filtered, padded not."""
    if asking and kind is not JoinKind.INNER:
        raise session.give_up(
            SqlError(
                f"a query in the condition of a {kind.value.upper()} JOIN is not supported",
                hint="write it into WHERE of a query in FROM, and join that",
                at=asking[0],
            )
        )


def _all(sources: Sequence[exp.Expr], select: exp.Select, session: ResolveContext) -> list[Relation]:
    found: list[Relation] = []
    for place, source in enumerate(sources):
        if isinstance(source, exp.Unnest) and place == 0:
            found.append(_first_unnested(source, session))
            continue
        if isinstance(source, exp.Unnest) or (place > 0 and is_lateral(source)):
            # It reads what is left of it, once that is joined.
            found.append(single_row())
            continue
        try:
            if place > 0 and is_temporal(source):
                found.append(resolve_versioned(source, session))
            else:
                found.append(_in_parentheses(source, select, session))
        except QueryRejected:
            continue
    if len(found) < len(sources):
        raise QueryRejected
    return found


def _in_parentheses(source: exp.Expr, select: exp.Select, session: ResolveContext) -> Relation:
    """An item of FROM, which may be a join in parentheses: its tables keep their names, unless it has an alias."""
    if not _is_joined(source):
        return resolve_relation(source, session)
    first = source.this.copy()
    joins = first.args.get("joins") or []
    first.set("joins", None)
    joined, _, _ = _chain(first, joins, [], select, session, inner=True)
    if source.args.get("alias") is None:
        return joined
    return aliased(visible(joined, session.place(source)), source, session)


def _is_joined(source: exp.Expr) -> bool:
    """Whether `source` is a table, or a join, in parentheses."""
    if not isinstance(source, exp.Subquery):
        return False
    inner = source.this
    if isinstance(inner, exp.Table) and not isinstance(inner.this, exp.Values):
        return True
    return isinstance(inner, exp.Table | exp.Subquery) and (bool(inner.args.get("joins")) or _is_joined(inner))


def _first_unnested(unnest: exp.Unnest, session: ResolveContext) -> Relation:
    return unnested(single_row(), unnest, outer=False, session=session)


def _unnested(left: Relation, join: exp.Join, unnest: exp.Unnest, kind: JoinKind, session: ResolveContext) -> Relation:
    """`left` beside the elements of one of its columns."""
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise session.give_up(
            SqlError(
                f"UNNEST takes no {kind.value.upper()} JOIN",
                detail="elements come from a row of the left side, so each has one",
                hint="write CROSS JOIN UNNEST(...), or LEFT JOIN UNNEST(...) ON TRUE to keep rows without elements",
                at=join,
            )
        )
    on = join.args.get("on")
    anything = on is None or (isinstance(on, exp.Boolean) and bool(on.this))
    if join.args.get("using") or (kind is JoinKind.LEFT and not anything):
        raise session.give_up(
            SqlError("UNNEST is joined ON TRUE", hint="write the condition into WHERE", at=on or join)
        )
    relation = unnested(left, unnest, outer=kind is JoinKind.LEFT, session=session)
    if on is None or anything:
        return relation
    condition = session.compile(on, relation.scope)
    if condition is None:
        raise QueryRejected
    return filtered(relation, checked_condition(condition, on), session.place(on))


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
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("method") and not natural:
        raise session.give_up(not_yet(f"{join.args['method']} JOIN", join))
    side, kind = join.args.get("side") or "", join.args.get("kind") or ""
    if kind in ("SEMI", "ANTI"):
        raise session.give_up(not_yet(f"{kind} JOIN", join, "write WHERE [NOT] EXISTS (SELECT ...)"))
    if isinstance(join.this, exp.Lateral) and not (is_temporal(join.this) or is_lateral(join.this)):
        raise session.give_up(not_yet("LATERAL of a function", join, "write CROSS JOIN UNNEST(array) AS t (column)"))
    if natural and (join.args.get("on") or join.args.get("using")):
        raise session.give_up(
            SqlError("NATURAL JOIN takes no condition", hint="leave out NATURAL, or the condition", at=join.this)
        )
    if side and not natural and not join.args.get("on") and not join.args.get("using"):
        raise session.give_up(
            SqlError(f"{side.upper()} JOIN needs a condition", hint="write ON or USING", at=join.this)
        )
    return JoinKind(side.lower()) if side else JoinKind.INNER


def _join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    nodes: list[exp.Expr],
    ttls: tuple[int, int],
    join: exp.Join,
    hot: list[Skew],
    session: ResolveContext,
) -> Relation:
    """The join of two inputs, with those of the `hot` keys spread that it compares."""
    merged = merged_columns(join, left, right, session)
    nodes = [*equations(merged, len(left.scope), join.this), *nodes]
    if is_temporal(join.this):
        joined = temporal_join(left, right, kind, nodes, ttls[0], join.this, hot, session)
        # Between both inputs stand the left keys that are no columns, under names of their own.
        start = next(i for i in range(len(left.scope), len(joined.scope)) if not joined.scope.columns[i].internal)
    else:
        found = sort_conditions(nodes, left, right, session)
        left, right, found = spread_all(left, right, kind, found, hot, session)
        joined = join_of(left, right, kind, found, ttls, join.this, session)
        start = len(left.scope) + sum(not isinstance(key, Column) for key, _, _ in found.keys)
    return shown_once(joined, merged, start, kind, join.this, session) if merged else joined
