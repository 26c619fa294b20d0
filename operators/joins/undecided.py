"""Pairs whose condition cannot be computed.

Law: such a pair is not shown, and while it is there neither of its rows is answered as one that matches nothing; the
other pairs of these rows are as ever. The row that the answer lacks is a dead letter: the left one, in a RIGHT JOIN the
right one, in a FULL JOIN both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Numbers
from operators.joins.kinds import JoinKind
from operators.joins.matching import Matches
from operators.names import REASON, WEIGHT


class UndecidedPairs:
    """The dead letters of one batch of a join, by port: those that are `given`, and the rows of undecided pairs."""

    def __init__(self, kind: JoinKind, given: Mapping[int, pa.Table] | None = None) -> None:
        self._dies = (kind is not JoinKind.RIGHT, kind in (JoinKind.RIGHT, JoinKind.FULL))
        self._dead = {port: [rows] for port, rows in (given or {}).items()}

    def add(self, matches: Matches, left: pa.Table, right: pa.Table | None, came: Mask | None = None) -> None:
        """Add the rows of the failed pairs of `matches`, or of those of them that `came`, each once. `right` is None
        where no right row ever dies."""
        for port, (dies, rows, places) in enumerate(zip(self._dies, (left, right), matches.failed, strict=True)):
            if not dies:
                continue
            assert rows is not None, "a right row dies"
            found: Numbers = np.unique(places if came is None else places[came])
            if len(found):
                self._dead.setdefault(port, []).append(_dead(rows.take(pa.array(found)), matches.reason))

    def dead(self) -> dict[int, pa.Table]:
        """Return the dead letters by port."""
        return {port: pa.concat_tables(tables) for port, tables in self._dead.items()}


def _dead(rows: pa.Table, reason: str) -> pa.Table:
    table = rows.append_column(WEIGHT, pa.array(np.ones(rows.num_rows, dtype=np.int64)))
    return table.append_column(REASON, pa.array([f"the condition of the join: {reason}"] * rows.num_rows))
