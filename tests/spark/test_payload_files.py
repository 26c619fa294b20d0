"""Large payloads of tasks on one host are files on their way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from operators.time import MIN_TIME
from service.runtime.envelope import Envelope, Kind, batch_of, from_batch, pack, table_of
from service.spark.query.payload_files import SMALLEST, PayloadFiles

LARGE = pa.table({"c0": pa.array(range(SMALLEST // 8))})
SMALL = pa.table({"c0": [1, 2, 3]})


def envelope(kind: Kind, payload: bytes) -> Envelope:
    """An envelope for the first shard of level 1."""
    return Envelope(0, 1, kind, 0, "0/topic/0", 0, 0, MIN_TIME, False, payload)


def sent(files: PayloadFiles, *envelopes: Envelope, attempt: int = 30) -> list[Envelope]:
    """What the next task is given by Spark."""
    given: Iterator[Envelope] = files.outgoing(iter(envelopes), attempt)
    return from_batch(batch_of(given))


def test_rows_in_a_file_arrive_as_they_left(tmp_path: Path) -> None:
    files = PayloadFiles(tmp_path, 7)
    large, small = sent(files, envelope(Kind.ROWS, pack(LARGE)), envelope(Kind.ROWS, pack(SMALL)))
    assert (large.payload, small.file) == (b"", "")
    assert large.file
    assert [table_of(large), table_of(small)] == [LARGE, SMALL]


def test_what_passes_a_level_untouched_stays_in_its_file(tmp_path: Path) -> None:
    files = PayloadFiles(tmp_path, 7)
    [first] = sent(files, envelope(Kind.OUTPUT, pack(LARGE)))
    [second] = sent(files, first)
    assert second == first


@pytest.mark.parametrize("kind", [Kind.TICK, Kind.CLOCK, Kind.METRICS, Kind.OFFSETS, Kind.STATE])
def test_what_is_no_table_never_goes_into_a_file(tmp_path: Path, kind: Kind) -> None:
    [passed] = sent(PayloadFiles(tmp_path, 7), envelope(kind, b"x" * (2 * SMALLEST)))
    assert not passed.file
    assert not list(tmp_path.iterdir())


def test_rows_stay_readable_for_a_task_that_has_mapped_them_when_the_batch_is_done(tmp_path: Path) -> None:
    files = PayloadFiles(tmp_path, 7)
    [large] = sent(files, envelope(Kind.ROWS, pack(LARGE)))
    mapped = table_of(large)
    files.remove()
    assert not Path(large.file).exists()
    assert mapped == LARGE


def test_the_files_of_another_batch_are_left_alone(tmp_path: Path) -> None:
    [other] = sent(PayloadFiles(tmp_path, 8), envelope(Kind.ROWS, pack(LARGE)))
    PayloadFiles(tmp_path, 7).remove()
    assert table_of(other) == LARGE


def test_another_attempt_of_a_task_does_not_touch_the_files_of_the_first(tmp_path: Path) -> None:
    files = PayloadFiles(tmp_path, 7)
    [first] = sent(files, envelope(Kind.ROWS, pack(LARGE)))
    read = table_of(first)
    [again] = sent(files, envelope(Kind.ROWS, pack(pa.concat_tables([SMALL] * (1 << 14)))), attempt=31)
    assert again.file != first.file
    assert read == table_of(first) == LARGE
