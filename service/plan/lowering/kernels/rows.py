"""Kernels of nodes that work row by row, and of those that keep rows by their key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from operators.rows.calc import Calc
from operators.rows.normalize import NormalizeOperator
from operators.rows.set_operation import SetOperationOperator
from operators.rows.unnest import UnnestOperator
from service.plan.expressions import Expression, render
from service.plan.lowering.faster import faster
from service.plan.lowering.kernels.parts import schema, schema_of
from service.plan.lowering.shared_parts import shared_parts
from service.plan.nodes import Normalize, SetOperation, Unnest


def calc(input: pa.Schema, expressions: Sequence[Expression], where: Expression | None) -> Calc:
    """Return the projection of the rows for which `where` is true."""
    computed = [faster(e) for e in expressions]
    parts = shared_parts(computed)
    return Calc(
        input=input,
        output=schema_of([e.type for e in expressions]),
        expressions=tuple(render(e) for e in computed),
        where=None if where is None else render(faster(where)),
        shared=parts.steps,
        over_shared=parts.expressions if parts.steps else (),
    )


def unnest(node: Unnest) -> UnnestOperator:
    """Return the kernel that repeats each row for the elements of an array or map."""
    return UnnestOperator(
        input=schema(node.input.fields), column=node.column, ordinality=node.ordinality, outer=node.outer
    )


def normalize(node: Normalize) -> NormalizeOperator:
    """Return the kernel that keeps the last row of each key."""
    return NormalizeOperator(output=schema(node.fields), key=node.key, ttl=node.ttl)


def set_operation(node: SetOperation) -> SetOperationOperator:
    """Return the kernel of INTERSECT or EXCEPT."""
    return SetOperationOperator(output=schema(node.fields), kind=node.kind, ttl=node.ttl)
