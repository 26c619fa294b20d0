"""Equal sub-plans become one: a view that two sinks read is computed once."""

from __future__ import annotations

from service.plan.canonical import ExactText
from service.plan.nodes import Job, Node
from service.plan.walk import rewrite


def share_subplans(job: Job) -> Job:
    """Replace every node by the first one of the job that computes the same.

    A RAND() of one view read twice was one value to its writer, so equal expressions that are not deterministic are
    shared like any other.

    >>> from tests.sql.outline import resolved
    >>> from service.plan.walk import in_order
    >>> twice = resolved("SELECT a1 FROM a UNION ALL SELECT a1 FROM a")
    >>> len(in_order(twice.sinks)), len(in_order(share_subplans(twice).sinks))
    (5, 3)
    """
    text = ExactText()
    first: dict[str, Node] = {}
    return rewrite(job, lambda node, _: first.setdefault(text.of(node), node))
