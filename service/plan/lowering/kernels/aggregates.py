"""Kernels of aggregates without a window, and of those over the rows before each row."""

from __future__ import annotations

from operators.aggregates.group_by import GroupBy, GroupPartial
from operators.over.over import OverOperator
from operators.over.settle import SettleOperator
from service.plan.lowering.kernels.parts import aggregates, appends, in_processing_time, schema
from service.plan.nodes import Aggregate, Node, Over


def group_partial(node: Aggregate) -> GroupPartial:
    """Return the stateless half of a GROUP BY."""
    return GroupPartial(
        input=schema(node.input.fields),
        keys=node.keys,
        aggregates=aggregates(node.aggregates),
        append=appends(node.input),
    )


def group(node: Aggregate) -> GroupBy:
    """Return the stateful half of a GROUP BY."""
    return GroupBy(partial=group_partial(node), output=schema(node.fields), ttl=node.ttl)


def settle(input: Node, partition: tuple[int, ...], time: int) -> SettleOperator:
    """Return the kernel that passes rows of an updating input on once they are final."""
    processing = in_processing_time(input, time)
    return SettleOperator(output=schema(input.fields), partition=partition, time=time, processing=processing)


def over(node: Over) -> OverOperator:
    """Return the kernel of OVER windows that share their partitions and order."""
    return OverOperator(
        input=schema(node.input.fields),
        output=schema(node.fields),
        partition=node.partition,
        time=node.time,
        calls=tuple(call.spec for call in node.calls),
        processing=in_processing_time(node.input, node.time),
        ttl=node.ttl,
        ties=node.ties,
    )
