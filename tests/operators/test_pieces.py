"""Tables that are too large for one value are cut, and no row of them is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from operators.names import SORT_KEY
from operators.pieces import pieces
from operators.state.block import BlockStore
from operators.state.contents import Merge
from operators.state.lookup import find
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.state.upkeep import Upkeep

ROW = 1000
TEXTS = pa.table({"n": range(100), "text": [str(n) * (ROW // len(str(n))) for n in range(100)]})


@pytest.mark.parametrize("largest", [1, 2 * ROW, 10 * ROW, 1 << 30])
def test_pieces_are_small_and_together_the_table(largest: int) -> None:
    cut = list(pieces(TEXTS, largest))
    assert pa.concat_tables(cut).equals(TEXTS)
    assert all(piece.nbytes <= largest or piece.num_rows == 1 for piece in cut)


def test_a_table_without_rows_is_one_piece() -> None:
    assert [piece.num_rows for piece in pieces(TEXTS.slice(0, 0), 1)] == [0]


def test_rows_of_one_batch_are_written_as_blocks_of_a_bounded_size() -> None:
    store = BlockStore(lambda block: pytest.fail("nothing is fetched"), 0)
    rows = TEXTS.append_column(SORT_KEY, pa.array(np.arange(100, dtype=np.uint64)))
    blocks = store.write(rows, None, largest=10 * ROW)
    assert len(blocks) > 9
    assert sum(block.rows for block in blocks) == 100
    assert all(block.bytes < 12 * ROW for block in blocks)
    assert [block.high + 1 for block in blocks[:-1]] == [block.low for block in blocks[1:]]
    assert sum(store.load(block).rows.num_rows for block in blocks) == 100


def test_a_block_of_which_only_a_part_would_be_seen_is_refused() -> None:
    rows = TEXTS.append_column(SORT_KEY, pa.array(np.arange(100, dtype=np.uint64)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=50)
    store = BlockStore(lambda block: sink.getvalue(), 1)
    (block,) = BlockStore(lambda block: sink.getvalue(), 0).write(rows, None)
    with pytest.raises(ValueError, match="more than one batch"):
        store.load(block)


def test_merges_advance_by_bytes_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.state.upkeep.STEP_BYTES", 20 * ROW)
    moved: list[int] = []
    move = Upkeep._move

    def noted(upkeep: Upkeep, merge: Merge, step: int) -> int:
        moved.append(move(upkeep, merge, step))
        return moved[-1]

    monkeypatch.setattr(Upkeep, "_move", noted)
    spec = TraceSpec(schema=TEXTS.schema, kind=TableKind.KEYED)
    blocks: dict[str, pa.Buffer] = {}
    state = State.open({"t": spec}, None, blocks.__getitem__)
    keys = np.arange(100, dtype=np.uint64)
    for _ in range(40):
        trace = state["t"]
        trace.replace(TEXTS, keys, keys if trace.blocks() else keys[:0])
        saved = state.seal()
        blocks.update(saved.added)
        for block in saved.removed:
            del blocks[block]
        assert find(state["t"], keys).select(TEXTS.schema.names).sort_by("n").equals(TEXTS)
    assert sum(block.rows for block in state["t"].blocks()) < 40 * 100
    assert sum(moved) > 1000
    assert max(moved) <= 2 * 20, "two runs of rows of about 1,000 bytes"
