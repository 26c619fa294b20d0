"""SELECT DISTINCT and UNION: each row once."""

from __future__ import annotations

from dataclasses import replace

from service.plan.nodes import Aggregate, Place
from service.plan.table import TimeKind
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.relation import Relation, visible
from service.sql.scope import Scope


def deduplicated(relation: Relation, session: ResolveContext, place: Place, ttl: int | None = None) -> Relation:
    """Return the distinct rows of `relation`: a group for each, without aggregates. Time attributes end here."""
    relation = visible(relation, place)
    fields = tuple(replace(f, time=TimeKind.NONE) for f in relation.fields)
    node = Aggregate(
        input=relation.node,
        keys=tuple(range(len(fields))),
        aggregates=(),
        fields=fields,
        ttl=session.ttl if ttl is None else ttl,
        place=place,
    )
    return Relation(node, Scope.of(fields))
