"""Kernels of joins."""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa

from operators.joins.interval_join import IntervalJoinOperator
from operators.joins.kinds import JoinKind
from operators.joins.lookup_join import LookupJoinOperator
from operators.joins.pair_join import PairJoinOperator
from operators.joins.regular_join import RegularJoin
from operators.joins.temporal_join import TemporalJoinOperator
from operators.joins.window_join import WindowJoinOperator
from service.plan.expressions import Expression, may_fail
from service.plan.lowering.kernels.parts import appends, in_processing_time, schema, text_of
from service.plan.nodes import AnyJoin, IntervalJoin, Join, LookupJoin, PairJoin, TemporalJoin, WindowJoin
from service.plan.passes.push_filters import both, conjuncts


class _Matched(TypedDict):
    """The common part of all joins: two inputs, their keys, and the rest of the condition."""

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: str | None


def _matched(node: AnyJoin) -> _Matched:
    return {
        "left": schema(node.left.fields),
        "right": schema(node.right.fields),
        "kind": node.kind,
        "left_keys": node.left_keys,
        "right_keys": node.right_keys,
        "residual": None if node.residual is None else text_of(_surest_first(node.residual)),
    }


def _surest_first(condition: Expression) -> Expression:
    """`condition` with the parts that may fail behind the others: they are computed only for pairs that these leave."""
    parts = conjuncts(condition)
    failing = [part for part in parts if may_fail(part)]
    if not failing or len(failing) == len(parts):
        return condition
    return both([*(part for part in parts if not may_fail(part)), *failing]) or condition


def _doubts(node: Join | TemporalJoin) -> bool:
    """Whether the condition may fail for a row that is emitted if it matches nothing."""
    return any(node.kind.shows_alone) and node.residual is not None and may_fail(node.residual)


def join(node: Join) -> RegularJoin:
    """Return the kernel of a regular join."""
    return RegularJoin(
        null_safe=node.null_safe,
        append=(appends(node.left), appends(node.right)),
        ttl=(node.left_ttl, node.right_ttl),
        doubts=_doubts(node),
        **_matched(node),
    )


def pair(node: PairJoin) -> PairJoinOperator:
    """Return the kernel that joins the halves of rows."""
    return PairJoinOperator(
        left=schema(node.left.fields),
        right=schema(node.right.fields),
        left_keys=node.left_keys,
        right_keys=node.right_keys,
    )


def interval(node: IntervalJoin) -> IntervalJoinOperator:
    """Return the kernel of an interval join."""
    return IntervalJoinOperator(
        null_safe=node.null_safe,
        left_time=node.left_time,
        right_time=node.right_time,
        lower=node.lower,
        upper=node.upper,
        processing=in_processing_time(node.left, node.left_time),
        **_matched(node),
    )


def window(node: WindowJoin) -> WindowJoinOperator:
    """Return the kernel of a window join."""
    return WindowJoinOperator(
        null_safe=node.null_safe,
        left_time=node.left_time,
        right_time=node.right_time,
        processing=in_processing_time(node.left, node.left_time),
        **_matched(node),
    )


def temporal(node: TemporalJoin) -> TemporalJoinOperator:
    """Return the kernel of a temporal join."""
    return TemporalJoinOperator(
        left_time=node.left_time,
        right_time=node.right_time,
        append=appends(node.left),
        ttl=node.ttl,
        untimed_deletes=node.untimed_deletes,
        doubts=_doubts(node),
        **_matched(node),
    )


def lookup(node: LookupJoin) -> LookupJoinOperator:
    """Return the kernel of a lookup join."""
    return LookupJoinOperator(append=appends(node.left), ttl=node.ttl, **_matched(node))
