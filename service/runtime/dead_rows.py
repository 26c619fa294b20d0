"""Finds the rows that cannot be computed: a row that makes a block fail costs that row, not the block and not the job.

Expected errors (a failed CAST, text that is no JSON) are found row by row where they arise. This is for all
others: the block is halved until the rows are found that cannot be computed, whatever the reason.
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
"""What no row is to blame for: a disk that is full, a folder that is gone, a schema registry that does not answer. The
batch is done again."""

Answer = TypeVar("Answer")


class DeadRow(NamedTuple):
    """A row, as a block of its own, that cannot be computed, and why."""

    row: pa.Table
    reason: str


def middle(rows: pa.Table) -> int:
    """Return where a block of two rows or more is halved."""
    half: int = rows.num_rows // 2
    return half


def without_dead_rows(
    rows: pa.Table, compute: Callable[[pa.Table], Answer], cut: Callable[[pa.Table], int] = middle
) -> tuple[list[Answer], list[DeadRow]]:
    """Return what `compute` answers to `rows`, in one piece or in several in the order of the rows, and the dead rows.

    `compute` must answer to two blocks of rows as to both in one, at least where `cut` parts them.
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
    """Return dead rows, one at least, as an operator gives them: with a column `_reason`."""
    rows = pa.concat_tables([each.row for each in found])
    return rows.append_column("_reason", pa.array([each.reason for each in found], pa.string()))


def with_dead_rows(step: Step, found: list[DeadRow]) -> Step:
    """Return the step of an operator with one input, with those found among its dead rows."""
    if not found:
        return step
    rows = block_of(found)
    return replace(step, dead={**step.dead, 0: pa.concat_tables([*([step.dead[0]] if 0 in step.dead else []), rows])})
