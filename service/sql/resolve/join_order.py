"""The order of joins: as it is written, unless /*+ LEADING(a, b, ...) */ names the tables that come first.

Inner joins give the same rows in any order, so only these are moved: a chain that holds another kind, or merges columns
by USING or NATURAL, keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from service.sql.errors import SqlError, did_you_mean
from service.sql.resolve.context import ResolveContext


@dataclass(frozen=True, slots=True)
class Led:
    """The tables of FROM in the order in which they are joined; `written` are their names in the order of the query.

    No join has a condition: these are conjuncts of `conditions`.
    """

    first: exp.Expr
    joins: list[exp.Join]
    conditions: list[exp.Expr]
    written: list[str]


def by_leading(first: exp.Expr, joins: Sequence[exp.Join], hint: exp.Expr, session: ResolveContext) -> Led | None:
    """Return the joins in the order of LEADING: the tables that it names, then the others as they are written; None
    where they are in this order already."""
    written = [_name(source) for source in (first, *(j.this for j in joins))]
    wanted = [each.name for each in hint.expressions]
    for each in hint.expressions:
        if each.name not in written or wanted.count(each.name) > 1:
            what = "and names it twice" if each.name in written else "which the query does not join"
            raise session.give_up(
                SqlError(
                    f'LEADING names "{each.name}", {what}',
                    detail=f"it joins {', '.join(filter(None, written))}",
                    hint=did_you_mean(each.name, [name for name in written if name]),
                    at=each,
                )
            )
    order = sorted(range(len(written)), key=lambda i: (_rank(written[i], wanted), i))
    if order == list(range(len(written))):
        return None
    fixed = next((j for j in joins if not _is_movable(j)), None)
    if fixed is not None or not all(written):
        raise session.give_up(
            SqlError(
                "LEADING cannot move these joins",
                detail="only INNER JOINs of named tables, with ON or in WHERE, give the same rows in any order",
                hint="name the tables in the order in which they are written, or write them in another",
                at=hint,
            )
        )
    sources = [first, *(j.this for j in joins)]
    conditions = [j.args["on"] for j in joins if j.args.get("on")]
    return Led(sources[order[0]], [exp.Join(this=sources[i]) for i in order[1:]], conditions, written)


def _name(source: exp.Expr) -> str:
    """The name under which a table is joined."""
    return source.alias or (source.name if isinstance(source, exp.Table) else "")


def _rank(name: str, wanted: Sequence[str]) -> int:
    return wanted.index(name) if name in wanted else len(wanted)


def _is_movable(join: exp.Join) -> bool:
    kept = ("side", "method", "using")
    plain = isinstance(join.this, exp.Table | exp.Subquery) and not join.this.args.get("version")
    return plain and not any(join.args.get(key) for key in kept)
