"""The origin of retractions, in words."""

from __future__ import annotations

from service.plan.describe import kind, names
from service.plan.nodes import Aggregate, Mode, Node, Normalize, Scan, WindowAggregate
from service.plan.properties import mode
from service.plan.walk import inputs


def origin(node: Node) -> str:
    """Return the node nearest to the sources that makes this relation take rows back, in words."""
    match _nearest_to_sources(node):
        case Scan(table=table) | Normalize(input=Scan(table=table)):
            return f'table "{table.name}"'
        case Aggregate(input=grouped, keys=keys):
            return f"GROUP BY {names(grouped, keys)}" if keys else "the aggregate"
        case WindowAggregate():
            return "a window that answers early or late ('table.exec.emit...')"
        case found:
            return f"the {kind(found)}"


def is_updated_at_source(node: Node) -> bool:
    """Return whether a table itself makes this relation take rows back, so that no step before it could be read."""
    return isinstance(_nearest_to_sources(node), Scan | Normalize)


def _nearest_to_sources(node: Node) -> Node:
    return next((_nearest_to_sources(each) for each in inputs(node) if mode(each) is Mode.RETRACT), node)


def article(word: str) -> str:
    """Return the article that stands before `word`."""
    return "an" if word[0] in "aeiou" else "a"
