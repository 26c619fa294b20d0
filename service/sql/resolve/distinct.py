"""SELECT DISTINCT and UNION: each row once."""

from __future__ import annotations

from service.plan.nodes import Aggregate, Place
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.relation import Relation, visible
from service.sql.resolve.window_sets import rows_of, shared_window, windowed_distinct
from service.sql.scope import Scope


def deduplicated(relation: Relation, session: ResolveContext, place: Place, ttl: int | None = None) -> Relation:
    """Return the distinct rows of `relation`: a group for each, without aggregates; those of a window, if it carries
    any, when the window closes."""
    window = shared_window([relation])
    if window is not None:
        shown = tuple(relation.scope.field(i) for i in relation.scope.starred())
        rows = rows_of(relation, window, window.columns[0], shown, place, session.zone)
        return windowed_distinct(rows, len(shown), window, place)
    relation = visible(relation, place)
    fields = tuple(f.keyed for f in relation.fields)
    node = Aggregate(
        input=relation.node,
        keys=tuple(range(len(fields))),
        aggregates=(),
        fields=fields,
        ttl=session.ttl if ttl is None else ttl,
        place=place,
    )
    return Relation(node, Scope.of(fields))
