"""Projection and filter: what a row says follows from that row alone, so the weight passes unchanged.

A row for which an expression cannot be computed (an overflow, a division by zero, a failed CAST) comes out on `dead`;
it costs the others nothing but a second evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes
from operators.failures import UNKNOWN, reason_of
from operators.fingerprint import DUCKDB_TEXT
from operators.kernel import PerBlock, Step, tag_of
from operators.names import REASON, WEIGHT, columns
from operators.sql import NOT_COMPUTABLE, Sql
from operators.sql_text import all_named, comma, inner, named, select
from operators.time import Clock, asks_time, time_parameter

if TYPE_CHECKING:
    from operators.state.operator_state import State

_ASKED = 100
"""Rows of a block whose reasons are found, each by a statement of its own: more would hold up the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc(KernelDefaults):
    """One expression a column of the output, for the rows for which `where` is true.

    Expressions are DuckDB text over c0, c1, ... of the input; `$now` is the processing time. `where` reads the input.
    Where expressions have parts in common, `shared` are those in steps, each over the input and the parts of the steps
    before, which are named s0, s1, ... in this order; `over_shared` are the same expressions over these.
    """

    input: pa.Schema
    output: pa.Schema
    expressions: tuple[str, ...] = field(metadata=DUCKDB_TEXT)
    where: str | None = field(default=None, metadata=DUCKDB_TEXT)
    shared: tuple[tuple[str, ...], ...] = field(default=(), metadata=DUCKDB_TEXT)
    over_shared: tuple[str, ...] = field(default=(), metadata=DUCKDB_TEXT)

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
            over_shared=(*self.over_shared, tag.name) if self.shared else (),
        )
        return PerBlock(kernel, len(self.output))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        try:
            return Step(changes=as_changes(self._run(sql, self._stepwise(), rows, clock), self.output))
        except NOT_COMPUTABLE:
            return self._apart(rows, clock, sql)

    def _stepwise(self) -> str:
        """The statement that computes what expressions have in common once."""
        if not self.shared:
            return self._plain()
        # The filter is innermost: DuckDB moves one ahead of a projection anyway, and what it reads with it.
        source, where, number = "changes", self.where or "", count()
        for step in self.shared:
            items = [named(text, f"s{next(number)}") for text in step]
            source, where = inner(select(["*", *items], source, where=where)), ""
        return select([*all_named(self.over_shared, columns(range(len(self.over_shared)))), WEIGHT], source)

    def _plain(self) -> str:
        items = all_named(self.expressions, columns(range(len(self.expressions))))
        return select([*items, WEIGHT], "changes", where=self.where or "")

    def _apart(self, rows: pa.Table, clock: Clock, sql: Sql) -> Step:
        """Tell the rows that cannot be computed from the others, then compute the others: no part apart, so that a row
        fails by what its own expressions are."""
        fails = _fails(self.expressions) if self.expressions else "false"
        if self.where is not None:
            fails = f"CASE WHEN {_fails([self.where])} THEN true WHEN {self.where} THEN {fails} ELSE false END"
        verdict = self._run(sql, select([named(fails, "bad")], "changes"), rows, clock).column("bad")
        good = self._run(sql, self._plain(), rows.filter(pa.compute.invert(verdict)), clock)
        bad = rows.filter(verdict)
        dead = bad.append_column(REASON, self._reasons(bad, clock, sql))
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
        return sql(statement, {"changes": rows}, time_parameter(statement, clock.now), by_row=True)


def _fails(expressions: Sequence[str]) -> str:
    """Return the condition that one of `expressions` cannot be computed: a struct is NULL only where TRY caught that,
    not where its fields are."""
    return f"TRY(struct_pack({comma(f'a{i} := {text}' for i, text in enumerate(expressions))})) IS NULL"
