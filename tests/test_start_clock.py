"""A clock that is wrong when the service starts is in doubt, where anything tells that it is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.checkpoint.files import FolderFiles
from service.deployment.start_clock import RIGHT, compared, noted_time

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
HOUR, DAY, YEAR = 3_600.0, 86_400.0, 365 * 86_400.0


@pytest.mark.parametrize(
    ("checkpoint", "topics"),
    [
        (NOW - 10, None),
        (NOW - 10, NOW - YEAR),
        (NOW - DAY, None),
        (NOW - YEAR, NOW - HOUR),
        (NOW - YEAR, NOW + YEAR),
        (NOW + HOUR, None),
    ],
)
def test_a_clock_is_right_that_is_near_what_was_noted_or_behind_what_producers_wrote(
    checkpoint: float, topics: float | None
):
    assert compared(NOW, checkpoint, topics) == RIGHT


@pytest.mark.parametrize(
    ("checkpoint", "topics", "ahead", "message"),
    [
        (NOW - YEAR, None, YEAR, "365 days ahead of everything that the checkpoint and the topics know"),
        (NOW - YEAR, NOW - YEAR - HOUR, YEAR, "the newest of 2025-03-01 12:00 UTC"),
        (NOW - YEAR, NOW - 2 * DAY, 2 * DAY, "the newest of 2026-02-27 12:00 UTC"),
        (NOW + YEAR, None, -YEAR, "365 days behind the last batch of the checkpoint, of 2027-03-01 12:00 UTC"),
        (NOW + 3 * HOUR, NOW, -3 * HOUR, "3 hours behind the last batch"),
    ],
)
def test_a_clock_is_in_doubt_that_nothing_confirms(checkpoint: float, topics: float | None, ahead: float, message: str):
    clock = compared(NOW, checkpoint, topics)
    assert clock.ahead == ahead
    assert message in clock.doubt
    assert "correct the clock" in clock.hint


@pytest.mark.parametrize(
    ("planned", "tick", "noted"),
    [
        (7_000, '{"now": 9000, "channels": {}, "ended": []}', 9.0),
        (9_000, '{"now": 7000, "channels": {}, "ended": []}', 9.0),
        (9_000, "-", 9.0),
        (9_000, '{"now": {"0": 12000}}', 9.0),
    ],
)
def test_the_checkpoint_notes_the_later_time_of_a_batch_and_its_tick(
    tmp_path: Path, planned: int, tick: str, noted: float
):
    assert noted_time(FolderFiles(str(tmp_path))) is None
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text(f'v1\n{{"batchTimestampMs":{planned}}}\n{{"t":{{"0":15}}}}\n{tick}')
    assert noted_time(FolderFiles(str(tmp_path))) == noted
