"""The rows of a block that may be among the top N of all: a stateless step before the exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, numbered
from operators.kernel import PerBlock, Step, tag_of
from operators.names import AT
from operators.ranking.ranking import EVERY_RANK, Ranking
from operators.sql import Sql
from operators.sql_text import select
from operators.state.operator_state import State
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNPartialOperator(KernelDefaults):
    """The top rows of each block, in their order of arrival; all rows have weight 1.

    Where all rows are ranked together they meet in one shard, which need not see the others.
    """

    output: pa.Schema
    ranking: Ranking

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    @property
    def piecewise(self) -> bool:
        return True

    def per_block(self) -> PerBlock:
        ranking = replace(self.ranking, partition=(*self.ranking.partition, len(self.output)))
        return PerBlock(
            replace(self, output=self.output.append(tag_of(self.output)), ranking=ranking), len(self.output)
        )

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        if rows.num_rows > self.ranking.last:
            rows = top_rows(rows, self.ranking, sql)
        return Step(changes=as_changes(rows, self.output))


def top_rows(rows: pa.Table, ranking: Ranking, sql: Sql) -> pa.Table:
    """Return those of `rows`, in the order of arrival, that may be in the top, in that order."""
    if ranking.last == EVERY_RANK:
        return rows
    rank = ranking.over(f"{AT} {'DESC' if ranking.latest_first else 'ASC'}")
    statement = select([AT], "rows", qualify=f"{rank} <= {ranking.last}", order_by=[AT])
    found = sql(statement, {"rows": numbered(rows)})
    return rows if found.num_rows == rows.num_rows else rows.take(found.column(AT))
