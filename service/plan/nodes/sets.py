"""Relations of the same columns put together: UNION ALL, INTERSECT, EXCEPT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.rows.set_operation import SetKind
from service.plan.nodes.relation import NOWHERE, Field, Place, check

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """All rows of all inputs (UNION ALL), which have the same types."""

    inputs: tuple[Node, ...]
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check(
            all([f.type for f in each.fields] == [f.type for f in self.fields] for each in self.inputs),
            self,
            "has inputs of its own types",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOperation:
    """INTERSECT or EXCEPT of two inputs with the types of `fields`; `ttl` in ms, 0 = forever."""

    left: Node
    right: Node
    kind: SetKind
    fields: tuple[Field, ...]
    ttl: int = 0
    place: Place = NOWHERE
