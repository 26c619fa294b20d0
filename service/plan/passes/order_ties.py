"""Which of several rows of one time is the first where rows are ranked by event time, the last first."""

from __future__ import annotations

from dataclasses import replace

from service.plan.nodes import Job, TopN
from service.plan.table import TimeKind
from service.plan.walk import fields, rewrite


def order_ties(job: Job) -> Job:
    """Let the row that arrived last be the first of its time only where one row is kept: the last row of its key.

    Where more are kept, it is the one that arrived first, as in Flink, which removes duplicates in the one case and
    ranks in the other. In processing time all rows of a batch tie, and the last to arrive is the last in any case.

    >>> from service.plan.passes.bound_ranks import bound_ranks
    >>> from tests.sql.outline import shown
    >>> last = "SELECT who FROM pay QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC)"
    >>> for bound in ("= 1", "<= 2"):
    ...     print(shown(f"{last} {bound}", bound_ranks, order_ties).splitlines()[1].strip())
    top 1 by (who) order by ts desc, the latest first
    top 2 by (who) order by ts desc
    """
    return rewrite(job, lambda node, _: _ordered(node) if isinstance(node, TopN) else node)


def _ordered(node: TopN) -> TopN:
    if not node.latest_first or node.first == node.last == 1:
        return node
    processing = fields(node.input)[node.order[0].column].time is TimeKind.PROCESSING
    return node if processing else replace(node, latest_first=False)
