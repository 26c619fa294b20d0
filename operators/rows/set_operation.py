"""INTERSECT and EXCEPT: a row is there as often as the numbers of its copies on both sides say.

Law: with m copies on the left and n on the right, INTERSECT ALL has min(m, n) of them and EXCEPT ALL max(0, m - n);
without ALL a row is there once or not at all. Both numbers are kept for each row, and the difference is emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
import pyarrow as pa

from operators.arrays import Numbers
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.kernel import Step
from operators.names import LEFT_COPIES, PREVIOUS, RIGHT_COPIES, WEIGHT
from operators.sql import Sql
from operators.sql_text import inner, named, select, total, union_all
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.keyed import KeyedTable
from operators.state.tables.table import specs_of
from operators.time import Clock


class SetKind(StrEnum):
    """The operation on two relations that says which of their rows are there."""

    INTERSECT = "intersect"
    INTERSECT_ALL = "intersect all"
    EXCEPT = "except"
    EXCEPT_ALL = "except all"

    @property
    def all(self) -> bool:
        """Whether a row may be there more than once."""
        return self in (SetKind.INTERSECT_ALL, SetKind.EXCEPT_ALL)

    def copies(self, left: Numbers, right: Numbers) -> Numbers:
        """Return how often a row is there that is `left` and `right` times on the two sides."""
        match self:
            case SetKind.INTERSECT:
                both: Numbers = ((left > 0) & (right > 0)).astype(np.int64)
                return both
            case SetKind.INTERSECT_ALL:
                fewer: Numbers = np.minimum(left, right)
                return fewer
            case SetKind.EXCEPT:
                one: Numbers = ((left > 0) & (right == 0)).astype(np.int64)
                return one
            case SetKind.EXCEPT_ALL:
                more: Numbers = np.maximum(left - right, 0)
                return more
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOperationOperator(KernelDefaults):
    """Port 0 is left, port 1 is right; both have the columns of `output`, and NULL is equal to NULL.

    A row that no side has written for `ttl` ms of processing time is forgotten (0 = never).
    """

    output: pa.Schema
    kind: SetKind
    ttl: int = 0

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output, self.output)

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._counted())

    def _counted(self) -> KeyedTable:
        """How often each row is there on both sides."""
        schema = pa.schema([*self.output, *(pa.field(name, pa.int64()) for name in (LEFT_COPIES, RIGHT_COPIES))])
        return KeyedTable(name="rows", schema=schema, keys=len(self.output), ttl=self.ttl)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        counted = self._counted()
        counted.expire(state, clock.now)
        if not any(rows.num_rows for rows in inputs):
            return Step(changes=no_changes(self.output))
        names = self.output.names
        lefts = select([*names, named(WEIGHT, "l"), named("0", "r")], "lefts")
        both = inner(union_all([lefts, select([*names, "0", WEIGHT], "rights")]))
        statement = select([*names, total("l"), total("r")], both, group_by=names)
        net = sql(statement, {"lefts": inputs[0], "rights": inputs[1]})
        pairs = counted.read(state, net, sql)
        before = [pairs.rows.column(PREVIOUS + name).fill_null(0).to_numpy() for name in (LEFT_COPIES, RIGHT_COPIES)]
        wanted = [was + pairs.rows.column(name).to_numpy() for was, name in zip(before, ("l", "r"), strict=True)]
        after = [np.maximum(count, 0) for count in wanted]
        weights = self.kind.copies(*after) - self.kind.copies(*before)
        rows = pairs.rows.select(self.output.names)
        kept = rows.append_column(LEFT_COPIES, pa.array(after[0])).append_column(RIGHT_COPIES, pa.array(after[1]))
        counted.write(state, pairs, kept, clock.now, stays=(after[0] > 0) | (after[1] > 0))
        changed = weights != 0
        changes = weigh(rows.filter(pa.array(changed)), 1).drop_columns([WEIGHT])
        changes = as_changes(changes.append_column(WEIGHT, pa.array(weights[changed])), self.output)
        missing = sum(int((count - want).sum()) for count, want in zip(after, wanted, strict=True))
        return Step(changes=changes, unmatched_retractions=missing)
