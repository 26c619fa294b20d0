"""Ranks that a new row would change for all rows behind it."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.nodes import Node, TopN
from service.plan.validate.problem import Problem


def rank_problems(node: Node) -> Iterator[Problem]:
    """Yield that the ranks of `node` need a bound."""
    if isinstance(node, TopN) and node.last is None and node.window_time is None:
        if isinstance(node.input, TopN) and node.ranks_like(node.input):
            return  # one bound is enough, and is asked for once
        name = node.function.value
        yield Problem(
            node.place,
            f"{name} in this order needs a bound",
            detail="each new row would change the rank of all rows behind it",
            hint=f"keep the first rows: SELECT ... FROM (SELECT *, {name}() OVER (...) AS n FROM ...) WHERE n <= 10",
        )
