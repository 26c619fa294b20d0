"""USING and NATURAL: columns of one name that are compared, and shown once.

The merged column is the one that is never padded, or COALESCE of both in a FULL JOIN. As the standard says, `*` lists
merged columns first, then the others of the left input, then those of the right one. Under the name of its table, each
of the two columns is still there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Column, Expression
from service.plan.nodes import JoinKind, Place, Project
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.relation import Relation, column, field_for
from service.sql.resolve.syntax import positional
from service.sql.scope import Scope, ScopeColumn


@dataclass(frozen=True, slots=True)
class Merged:
    """The columns that a join merges: `name`, and where it is in the left and in the right input."""

    name: str
    left: int
    right: int


def merged_columns(join: exp.Join, left: Relation, right: Relation, session: ResolveContext) -> list[Merged]:
    """Return what USING names, or what NATURAL finds; nothing where the join has neither."""
    if _is_natural(join):
        names = [(name, join.this) for name in _in_both(left, right)]
    else:
        names = [(name.name, name) for name in join.args.get("using") or ()]
    found: list[Merged] = []
    with session.all_or_nothing():
        for name, at in names:
            with session.mistakes.collecting(at):
                found.append(Merged(name, left.scope.lookup([name]).index, right.scope.lookup([name]).index))
    twice = [name for name, count in Counter(m.name for m in found).items() if count > 1]
    if twice:
        raise session.give_up(SqlError(f'USING names "{twice[0]}" twice', at=join))
    return found


def equations(merged: Sequence[Merged], width: int, at: exp.Expr) -> list[exp.Expr]:
    """Return the conditions of USING over both inputs, of which the left one has `width` columns."""
    return [exp.EQ(this=positional(m.left, at), expression=positional(width + m.right, at)) for m in merged]


def shown_once(
    joined: Relation, merged: Sequence[Merged], start: int, kind: JoinKind, at: exp.Expr, session: ResolveContext
) -> Relation:
    """Return the relation of a join with its merged columns in front; the right input's columns begin at `start`."""
    hidden = {place for m in merged for place in (m.left, start + m.right)}
    expressions: list[Expression] = []
    columns: list[ScopeColumn] = []
    kept: dict[int, int] = {}
    for m in merged:
        if kind is JoinKind.FULL:
            expression = _either(m, start, joined.scope, at, session)
            expressions.append(expression)
            columns.append(ScopeColumn(field_for(m.name, expression, joined.scope)))
            continue
        place = start + m.right if kind is JoinKind.RIGHT else m.left
        kept[place] = len(expressions)
        expressions.append(column(joined.scope, place))
        columns.append(joined.scope.columns[place])
    for place, each in enumerate(joined.scope):
        if place not in kept:
            kept[place] = len(expressions)
            expressions.append(column(joined.scope, place))
            columns.append(replace(each, listed=False) if place in hidden else each)
    return _permuted(joined, expressions, columns, kept, session.place(at))


def _is_natural(join: exp.Join) -> bool:
    return str(join.args.get("method") or "").upper() == "NATURAL"


def _in_both(left: Relation, right: Relation) -> list[str]:
    """The names that `*` lists on both sides, in the order of the left one."""
    theirs = {right.scope.field(i).name for i in right.scope.starred()}
    return list(dict.fromkeys(n for i in left.scope.starred() if (n := left.scope.field(i).name) in theirs))


def _either(m: Merged, start: int, scope: Scope, at: exp.Expr, session: ResolveContext) -> Expression:
    """The column of the side that is there."""
    sides: list[exp.Expr] = [positional(m.left, at), positional(start + m.right, at)]
    compiled = session.compile(exp.Anonymous(this="COALESCE", expressions=sides), scope)
    if compiled is None:
        raise QueryRejected
    return compiled


def _permuted(
    joined: Relation,
    expressions: Sequence[Expression],
    columns: Sequence[ScopeColumn],
    kept: dict[int, int],
    place: Place,
) -> Relation:
    """The relation with `columns`; `kept` says where each of its own columns has gone."""
    if all(isinstance(e, Column) and e.index == i for i, e in enumerate(expressions)):
        return replace(joined, scope=Scope(tuple(columns)))
    node = Project(
        input=joined.node, expressions=tuple(expressions), fields=tuple(c.field for c in columns), place=place
    )
    windows = tuple(w.moved(kept) for w in joined.windows)
    return Relation(node, Scope(tuple(columns)), windows)


def reordered(relation: Relation, order: Sequence[int], place: Place) -> Relation:
    """Return the relation with its columns in another order: column i is the one that was at `order[i]`."""
    scope = relation.scope
    kept = {old: new for new, old in enumerate(order)}
    return _permuted(relation, [column(scope, i) for i in order], [scope.columns[i] for i in order], kept, place)
