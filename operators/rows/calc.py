"""Projection and filter: what a row says follows from that row alone, so the weight passes unchanged.

A row for which an expression cannot be computed (an overflow, a division by zero, a failed CAST) comes out on `dead`;
it costs the others nothing but a second evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes
from operators.failures import UNKNOWN, reason_of
from operators.kernel import WEIGHT, PerBlock, Step, tag_of
from operators.sql import NOT_COMPUTABLE, Sql
from operators.time import Clock, asks_time, time_parameter

if TYPE_CHECKING:
    from operators.state.operator_state import State

_ASKED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc(KernelDefaults):
    """One expression a column of the output, for the rows for which `where` is true.

    Expressions are DuckDB text over c0, c1, ... of the input; `$now` is the processing time. `where` reads the input.
    """

    input: pa.Schema
    output: pa.Schema
    expressions: tuple[str, ...]
    where: str | None = None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    @property
    def reads_now(self) -> bool:
        return any(map(asks_time, (*self.expressions, self.where or "")))

    @property
    def piecewise(self) -> bool:
        return True

    def per_block(self) -> PerBlock:
        tag = tag_of(self.input)
        kernel = replace(
            self,
            input=self.input.append(tag),
            output=self.output.append(tag_of(self.output)),
            expressions=(*self.expressions, tag.name),
        )
        return PerBlock(kernel, len(self.output))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        try:
            return Step(changes=as_changes(self._run(sql, self._plain(), rows, clock), self.output))
        except NOT_COMPUTABLE:
            return self._apart(rows, clock, sql)

    def _items(self) -> str:
        return ", ".join(f"{e} AS c{i}" for i, e in enumerate(self.expressions))

    def _plain(self) -> str:
        where = f" WHERE {self.where}" if self.where is not None else ""
        return f"SELECT {', '.join(filter(None, (self._items(), WEIGHT)))} FROM changes{where}"

    def _apart(self, rows: pa.Table, clock: Clock, sql: Sql) -> Step:
        """Tell the rows that cannot be computed from the others, then compute the others."""
        checks = [f"TRY(struct_pack({', '.join(f'a{i} := {e}' for i, e in enumerate(self.expressions))})) IS NULL"]
        if not self.expressions:
            checks = ["false"]
        if self.where is not None:
            fails = f"TRY(struct_pack(a := {self.where})) IS NULL"
            checks = [f"CASE WHEN {fails} THEN true WHEN {self.where} THEN {checks[0]} ELSE false END"]
        verdict = self._run(sql, f"SELECT {checks[0]} AS bad FROM changes", rows, clock).column("bad")
        good = self._run(sql, self._plain(), rows.filter(pa.compute.invert(verdict)), clock)
        bad = rows.filter(verdict)
        dead = bad.append_column("_reason", self._reasons(bad, clock, sql))
        return Step(changes=as_changes(good, self.output), dead={0: dead})

    def _reasons(self, bad: pa.Table, clock: Clock, sql: Sql) -> pa.Array:
        """Why each row cannot be computed; of many, only the first are asked one by one."""
        reasons = []
        for at in range(min(bad.num_rows, _ASKED)):
            try:
                self._run(sql, self._plain(), bad.slice(at, 1), clock)
                reasons.append(UNKNOWN)
            except NOT_COMPUTABLE as error:
                reasons.append(reason_of(error))
        reasons += [UNKNOWN] * (bad.num_rows - len(reasons))
        return pa.array(reasons, pa.string())

    def _run(self, sql: Sql, statement: str, rows: pa.Table, clock: Clock) -> pa.Table:
        return sql(statement, {"changes": rows}, time_parameter(statement, clock.now))
