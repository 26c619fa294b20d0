"""The watermarks of rows where they enter: the values of WATERMARK FOR ... AS ... for the rows of a block."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from operators.names import column
from operators.sql import Sql
from operators.sql_text import named, select
from operators.time import MIN_TIME
from service.plan.program import Source
from service.runtime.dead_rows import without_dead_rows


class AssertedWatermarks:
    """Computes the watermarks of the blocks of one source."""

    def __init__(self, source: Source, sql: Sql) -> None:
        self._source = source
        self._sql = sql

    def of(self, blocks: Sequence[pa.Table]) -> list[int]:
        """Return the highest watermark of the rows of each block, in milliseconds: MIN_TIME if there is none. A row
        without a time has none."""
        asserted: list[int | None] = [None] * len(blocks)
        places = [i for i, rows in enumerate(blocks) if rows.num_rows]
        if self._source.watermark is None or not places:
            return [MIN_TIME] * len(blocks)
        if self._source.rises_with is not None:
            name = column(self._source.rises_with)
            type_ = blocks[places[0]].schema.field(name).type
            highest = pa.array([pc.max(blocks[i][name]) for i in places], type_)
            for place, found in zip(places, self._each(pa.table({name: highest})), strict=True):
                asserted[place] = found
        for place in places:
            if asserted[place] is None:  # This also covers a highest value that is out of the range of times.
                each, _ = without_dead_rows(blocks[place], self._highest)
                asserted[place] = max((found for found in each if found is not None), default=None)
        return [MIN_TIME if found is None else found for found in asserted]

    def _each(self, rows: pa.Table) -> Sequence[int | None]:
        """The watermark of each row."""
        found, failed = without_dead_rows(rows, self._read_watermarks)
        return [None] * rows.num_rows if failed else [each for part in found for each in part]

    def _read_watermarks(self, rows: pa.Table) -> list[int | None]:
        answer: list[int | None] = self._asked("epoch_ms(TRY({}))", rows).to_pylist()
        return answer

    def _highest(self, rows: pa.Table) -> int | None:
        highest: int | None = self._asked("max(epoch_ms(TRY({})))", rows)[0].as_py()
        return highest

    def _asked(self, item: str, rows: pa.Table) -> pa.ChunkedArray:
        statement = select([named(item.format(self._source.watermark), "w")], "changes")
        return self._sql(statement, {"changes": rows})["w"]
