"""Rows that may be retracted, numbered in the order of event time: each once, when the watermark reaches it."""

from __future__ import annotations

from dataclasses import replace

from service.plan.nodes import Frame, Job, Mode, Node, Over, OverCall, RankFunction, TopN
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.plan.types import BIGINT
from service.plan.walk import fields, rewrite


def settle_ranks(job: Job) -> Job:
    """Answer ranks by event time that no condition bounds as OVER windows, where rows may be retracted.

    A rank under a bound stays a Top-N, which corrects itself.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT name, RANK() OVER (PARTITION BY name ORDER BY ts) AS n FROM shelf", settle_ranks))
    project name, RANK()
      over name on ts: RANK(*) range None
        normalize id
          scan shelf
    """
    return rewrite(job, lambda node, _: _settled(node) if isinstance(node, TopN) else node)


def _settled(node: TopN) -> Node:
    unbounded = node.window_time is None and node.shown and (node.first, node.last) == (1, None)
    if not unbounded or node.function.of_all or len(node.order) != 1:
        return node
    (by,) = node.order
    frame = Frame(rows=node.function is RankFunction.ROW_NUMBER, preceding=None)
    call = OverCall(node.function.value, (), BIGINT, frame)
    below = node.input
    if isinstance(below, Over) and (below.partition, below.time) == (node.partition, by.column) and not by.descending:
        return replace(below, calls=(*below.calls, call), fields=node.fields)
    if mode(below) is Mode.APPEND:
        return node
    if by.descending or fields(node.input)[by.column].time is not TimeKind.EVENT:
        return node
    return Over(
        input=node.input,
        partition=node.partition,
        time=by.column,
        calls=(call,),
        fields=node.fields,
        ttl=node.ttl,
        place=node.place,
    )
