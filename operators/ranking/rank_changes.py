"""The net change of a ranking from the ranks of rows before and after a batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.arrays import Mask
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, numbered, positional
from operators.names import AT, WEIGHT, columns
from operators.ranking.ranking import Ranking
from operators.sql import Sql
from operators.sql_text import select, total

Ranks = npt.NDArray[np.int64]
"""The rank of each row; NOWHERE where it has none."""

NOWHERE = 2**62
"""The rank of a row that is not there."""


def ranked_schema(input: pa.Schema, ranking: Ranking) -> pa.Schema:
    """Return the columns of the answer: those of the input, and the rank if it is shown."""
    return positional([*input.types, ranking.function.type]) if ranking.shown else input


class RankingDefaults(KernelDefaults):
    """The defaults of a kernel that answers the rows of its only `input` that `ranking` asks for."""

    __slots__ = ()

    input: pa.Schema
    ranking: Ranking

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """The only input."""
        return (self.input,)

    @property
    def output(self) -> pa.Schema:
        """The columns of the input, and the rank if it is shown."""
        return ranked_schema(self.input, self.ranking)


def rank_changes(rows: pa.Table, before: Ranks, after: Ranks, refreshed: Mask, ranking: Ranking, sql: Sql) -> pa.Table:
    """Return what is retracted, then what is new, each row of the answer once.

    `before` and `after` are the ranks of `rows`. A row whose answer is the same comes out with weight 0 if it is
    `refreshed`: it was written again.
    """
    was = (ranking.first <= before) & (before <= ranking.last)
    is_ = (ranking.first <= after) & (after <= ranking.last)
    moved = before != after if ranking.shown else np.zeros(len(before), dtype=np.bool_)
    names = [name for name in rows.column_names if name != WEIGHT]
    output = ranked_schema(pa.schema([rows.schema.field(name) for name in names]), ranking)

    def part(mask: Mask, ranks: Ranks, weight: int) -> pa.Table:
        table = rows.filter(pa.array(mask))
        if ranking.shown:
            table = table.append_column(output.names[-1], pa.array(ranks[mask]))
        return weigh(table, weight)

    parts = [part(was & (~is_ | moved), before, -1), part(is_ & (~was | moved), after, 1)]
    kept = is_ & was & ~moved & refreshed
    if kept.any():
        parts.append(part(kept, after, 0))
    table = pa.concat_tables(parts)
    if parts[0].num_rows and parts[1].num_rows:
        table = net(table, output, refreshes=bool(refreshed.any()), sql=sql)
    return as_changes(table, output)


def net(table: pa.Table, output: pa.Schema, *, refreshes: bool, sql: Sql) -> pa.Table:
    """Return equal rows as one, with the sum of their weights: two equal rows may have exchanged their places."""
    names = columns(range(len(output)))
    remains = "" if refreshes else f"SUM({WEIGHT}) <> 0"
    statement = select([*names, total(WEIGHT)], "changes", group_by=names, having=remains, order_by=[f"MIN({AT})"])
    return sql(statement, {"changes": numbered(table)})
