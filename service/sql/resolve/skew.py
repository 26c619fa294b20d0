"""A hot key spread over shards: /*+ SKEW('side', 'key', value, ...) */.

Rows of the hot side get a number that follows from the row alone, so a row that is retracted finds its place again.
The rows of the other side are there once for each number, and the number is one more key of the join: each pair meets
exactly once. Only rows with the values that are named are spread; without values, all are. The side that is repeated
must not be padded, since each of its copies would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import Field, JoinKind, Unnest
from service.plan.properties import unique_keys
from service.plan.table import TimeKind
from service.plan.types import INT, Array
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions.literals import boolean
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.join_conditions import Conditions
from service.sql.resolve.join_inputs import shifted
from service.sql.resolve.relation import Relation, column, extended
from service.sql.resolve.syntax import positional
from service.sql.scope import INTERNAL, Scope, ScopeColumn

PLACES = 8
"""The number of shards over which a hot key is distributed: the other side's rows of that key are kept as often."""

_SPREADABLE = (
    (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI),
    (JoinKind.INNER, JoinKind.RIGHT),
)
"""The joins in which rows of the left and of the right input can be spread: those of the other are not shown alone."""

_SPREAD = (
    "(CASE WHEN {{0}} THEN CAST(md5_number_lower(concat_ws('/', {columns})) % {places} AS INTEGER) + 1 ELSE 1 END)"
)
_COPIES = "(CASE WHEN {{0}} THEN [{numbers}] ELSE [1] END)"


@dataclass(frozen=True, slots=True)
class Skew:
    """Rows of the table `side` are many for some `values` of its column `key`, or for all."""

    side: str
    key: str
    values: tuple[exp.Expr, ...]
    at: exp.Expr


def skews(select: exp.Select, qualifiers: Iterable[str], session: ResolveContext) -> list[Skew]:
    """Return the SKEW hints of a query."""
    hint, known = select.args.get("hint"), tuple(qualifiers)
    found: list[Skew] = []
    for call in hint.expressions if hint else ():
        if call.name.upper() != "SKEW":
            continue
        side, key, *values = [*call.expressions, None, None][: max(2, len(call.expressions))]
        if side is None or key is None:
            raise session.give_up(SqlError("SKEW takes 'side', 'key' and values of the key", at=call))
        if side.name not in known:
            raise session.give_up(
                SqlError(
                    f'SKEW names "{side.name}", which the query does not join',
                    detail=f"it reads {', '.join(known)}",
                    hint=did_you_mean(side.name, known),
                    at=side,
                )
            )
        found.append(Skew(side.name, key.name, tuple(v for v in values if v is not None), call))
    return found


def spread(
    left: Relation, right: Relation, kind: JoinKind, found: Conditions, skew: Skew, session: ResolveContext
) -> tuple[Relation, Relation, Conditions] | None:
    """Return the inputs of a join and its conditions with a hot key spread; None where it does not compare that key."""
    sides = (left, right)
    for place, (hot, other) in enumerate((sides, sides[::-1])):
        for one, two, _ in found.keys:
            mine, theirs = (one, two) if place == 0 else (two, one)
            compared = mine
            while isinstance(compared, Call) and compared.name == "CAST":
                (compared,) = compared.arguments
            if not isinstance(compared, Column) or not _is(hot.scope.columns[compared.index], skew):
                continue
            if kind not in _SPREADABLE[place]:
                raise session.give_up(
                    SqlError(
                        f'SKEW cannot spread "{skew.side}" in a {kind.value.upper()} JOIN',
                        detail="rows of the other side are repeated, and would be padded as often",
                        hint=f'write an INNER JOIN, or one that keeps the rows of "{skew.side}"',
                        at=skew.at,
                    )
                )
            number = _number(hot, _asked(hot, compared, skew, session))
            if not isinstance(theirs, Column):
                other = extended(other, [theirs], session.place(skew.at))
                theirs = column(other.scope, len(other.scope) - 1)
            copied, copy = _copied(other, _asked(other, theirs, skew, session), skew.at, session)
            if place == 0:
                return left, copied, replace(found, keys=[*found.keys, (number, copy, False)])
            by = len(copied.scope) - len(left.scope)
            rest = [shifted(c, len(left.scope), by) for c in found.rest]
            bounds = [(replace(bound, right=bound.right + by), node) for bound, node in found.bounds]
            keys = [*found.keys, (copy, number, False)]
            return copied, right, replace(found, keys=keys, bounds=bounds, rest=rest)
    return None


def spread_all(
    left: Relation, right: Relation, kind: JoinKind, found: Conditions, hot: list[Skew], session: ResolveContext
) -> tuple[Relation, Relation, Conditions]:
    """Return the same for all hints that the join takes, which are then removed from `hot`."""
    for skew in list(hot):
        wide = spread(left, right, kind, found, skew, session)
        if wide is not None:
            hot.remove(skew)
            left, right, found = wide
    return left, right, found


def place_by(value: Expression) -> Expression:
    """Return the place, by one of its values, of a row that meets the rows of another relation `everywhere`."""
    return _placed(boolean(True), [value])


def everywhere(relation: Relation, at: exp.Expr, session: ResolveContext) -> tuple[Relation, Expression]:
    """Return `relation` with each row once for each place, and the column that says for which."""
    return _copied(relation, boolean(True), at, session)


def check_taken(hot: Iterable[Skew], session: ResolveContext) -> None:
    """Note each hint that no join has taken; raises QueryRejected if there are any."""
    with session.all_or_nothing():
        for skew in hot:
            session.mistakes.add_error(_not_compared(skew))


def _not_compared(skew: Skew) -> SqlError:
    return SqlError(
        f'no join compares "{skew.key}" of "{skew.side}" that SKEW could spread',
        detail="it spreads a column that a join compares by equality, lookup joins left out",
        hint="name the column as it is written in ON or USING",
        at=skew.at,
    )


def _is(found: ScopeColumn, skew: Skew) -> bool:
    return (found.qualifier, found.field.name) == (skew.side, skew.key)


def _asked(relation: Relation, key: Column, skew: Skew, session: ResolveContext) -> Expression:
    """Whether the key of a row has one of the values."""
    if not skew.values:
        return boolean(True)
    values = [v.copy() for v in skew.values]
    compiled = session.compile(exp.In(this=positional(key.index, skew.at), expressions=values), relation.scope)
    if compiled is None:
        raise QueryRejected
    return compiled


def _number(relation: Relation, asked: Expression) -> Expression:
    """The place of a row of the hot side: that of its unique key, or of all its columns but PROCTIME()."""
    unique = unique_keys(relation.node)
    scope = relation.scope
    read = sorted(unique[0]) if unique and unique[0] else range(len(scope))
    return _placed(asked, [column(scope, i) for i in read if scope.field(i).time is not TimeKind.PROCESSING])


def _placed(asked: Expression, columns: Sequence[Expression]) -> Expression:
    texts = ", ".join(f"CAST({{{i}}} AS VARCHAR)" for i in range(1, len(columns) + 1))
    template = _SPREAD.format(columns=texts, places=PLACES)
    return Call("spread", (asked, *columns), INT, template, constants=(PLACES,))


def _copied(
    relation: Relation, asked: Expression, at: exp.Expr, session: ResolveContext
) -> tuple[Relation, Expression]:
    """The other side with each row that is `asked` for once for each place, and the column that says for which."""
    numbers = ", ".join(map(str, range(1, PLACES + 1)))
    copies = Call("copies", (asked,), Array(INT), _COPIES.format(numbers=numbers), constants=(PLACES,))
    below = extended(relation, [copies], session.place(at))
    fields = (Field("copy", INT), Field("spread", INT, nullable=False))
    node = Unnest(
        input=below.node,
        column=len(relation.scope),
        ordinality=True,
        outer=False,
        fields=(*below.fields, *fields),
        place=session.place(at),
    )
    hidden = tuple(ScopeColumn(f, alias=f"{INTERNAL}{f.name}") for f in fields)
    copied = Relation(node, Scope((*below.scope.columns, *hidden)), relation.windows)
    return copied, column(copied.scope, len(copied.scope) - 1)
