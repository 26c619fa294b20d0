"""The origin of retractions, in words."""

from __future__ import annotations

from service.plan.describe import kind, names
from service.plan.nodes import Aggregate, Mode, Node, Normalize, Scan, WindowAggregate
from service.plan.properties import mode
from service.plan.walk import inputs


def origin(node: Node) -> str:
    """Return the node nearest to the sources that makes this relation take rows back, in words."""
    for each in inputs(node):
        if mode(each) is Mode.RETRACT:
            return origin(each)
    match node:
        case Scan(table=table):
            return f'table "{table.name}"'
        case Normalize(input=Scan(table=table)):
            return f'table "{table.name}"'
        case Aggregate():
            return f"GROUP BY {names(node.input, node.keys)}" if node.keys else "the aggregate"
        case WindowAggregate():
            return "a window that answers early or late ('table.exec.emit...')"
        case _:
            return f"the {kind(node)}"


def article(word: str) -> str:
    """Return the article that stands before `word`."""
    return "an" if word[0] in "aeiou" else "a"
