"""Finds the rows that cannot be computed, so that such a row costs neither its block nor the job.

Expected errors (a failed CAST, text that is no JSON) are found row by row where they arise. This is for all others: the
block is halved until the rows are found that cannot be computed, whatever the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import duckdb
import pyarrow as pa

from operators.failures import UNKNOWN, reason_of
from operators.kernel import Step
from service.schema_registry.errors import RegistryFailure

OF_THE_MACHINE = (OSError, duckdb.IOException, RegistryFailure)
"""Errors that no row causes: a full disk, a missing folder, a schema registry that does not answer. The batch is
repeated."""

Answer = TypeVar("Answer")


class DeadRow(NamedTuple):
    """A row that cannot be computed, as a block of its own, and the reason."""

    row: pa.Table
    reason: str


def middle(rows: pa.Table) -> int:
    """Return the place at which a block of two rows or more is halved."""
    half: int = rows.num_rows // 2
    return half


def without_dead_rows(
    rows: pa.Table, compute: Callable[[pa.Table], Answer], cut: Callable[[pa.Table], int] = middle
) -> tuple[list[Answer], list[DeadRow]]:
    """Return the answer of `compute` to `rows`, in one piece or in several in the order of the rows, and the dead rows.

    `compute` must give the same rows for a block as for its two parts, at least at the places where `cut` divides it.
    """
    try:
        return [compute(rows)], []
    except OF_THE_MACHINE:
        raise
    except Exception as error:
        if rows.num_rows == 0:
            raise
        if rows.num_rows == 1:
            return [], [DeadRow(rows, reason_of(error) or UNKNOWN)]
    half = cut(rows)
    first, bad = without_dead_rows(rows.slice(0, half), compute, cut)
    second, worse = without_dead_rows(rows.slice(half), compute, cut)
    return first + second, bad + worse


def block_of(found: list[DeadRow]) -> pa.Table:
    """Return dead rows, at least one, in the form that an operator emits: with a column `_reason`."""
    rows = pa.concat_tables([each.row for each in found])
    return rows.append_column("_reason", pa.array([each.reason for each in found], pa.string()))


def with_dead_rows(step: Step, found: list[DeadRow]) -> Step:
    """Return the step of an operator with one input; its dead rows include those that fail as a block."""
    if not found:
        return step
    rows = block_of(found)
    return replace(step, dead={**step.dead, 0: pa.concat_tables([*([step.dead[0]] if 0 in step.dead else []), rows])})
