"""Decoding of blocks of records to rows: several small blocks at once where that is equivalent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import DeadLetter, Decoded, Decoder
from service.formats.dead_letters import NOT_DECODED
from service.formats.records import dead
from service.runtime.dead_rows import OF_THE_MACHINE, without_dead_rows
from service.runtime.record_runs import Run, whole


class BlockDecoder:
    """Decodes blocks of the records of one source."""

    def __init__(self, decoder: Decoder, sql: Sql) -> None:
        self._decoder = decoder
        self._sql = sql

    def decode(self, runs: Sequence[Run]) -> list[Decoded]:
        """Decode runs of records together, if the result tells which rows came from which run."""
        blocks = [run.records for run in runs]
        if len(blocks) == 1:
            return [self._decode_alone(blocks[0])]
        try:
            found = self._decoder.decode(whole(runs), self._sql)
        except OF_THE_MACHINE:
            raise
        except Exception:
            return [self._decode_alone(block) for block in blocks]
        ends = np.cumsum([block.num_rows for block in blocks])
        if found.dead.num_rows or found.changes.num_rows != (ends[-1] if found.records is None else len(found.records)):
            return [self._decode_alone(block) for block in blocks]
        places = ends if found.records is None else np.searchsorted(found.records, ends)
        starts = [0, *places[:-1].tolist()]
        return [
            Decoded(found.changes.slice(first, int(last) - first), found.dead)
            for first, last in zip(starts, places, strict=True)
        ]

    def _decode_alone(self, records: pa.Table) -> Decoded:
        """The rows of a block of records; a record that makes the decoder fail is a dead letter like others."""
        found, failed = without_dead_rows(records, lambda block: self._decoder.decode(block, self._sql))
        if len(found) == 1 and not failed:
            return found[0]
        if not found:
            found = [self._decoder.decode(records.slice(0, 0), self._sql)]
        bad = [dead(each.row, {0: DeadLetter(NOT_DECODED, each.reason)}) for each in failed]
        dead_records = pa.concat_tables([*(each.dead for each in found), *bad])
        return Decoded(pa.concat_tables([each.changes for each in found]), dead_records.sort_by("offset"))
