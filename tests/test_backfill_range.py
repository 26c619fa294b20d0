"""Where the sources of a backfill start, and when that is not where they have to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.checkpoint.files import FolderFiles
from service.deployment import backfill
from service.deployment.backfill import BEGINNING, EARLIEST, BackfillRange, BackfillStart, backfill_range, positions_in
from service.kafka.admin import Offsets, StartPosition
from service.plan.backfill import backfill_part
from tests.spark.test_upgrades import CHANGES, QUERY_BEFORE, program_of

BEFORE = QUERY_BEFORE.replace("'1 d'", "'0 s'")
HOUR = 3_600_000


class _Cluster:
    """Topics of two partitions whose first records are gone up to `first`; record n of each is of n ms past HOUR."""

    first = 0
    compacted = False

    def __init__(self, kafka: object) -> None:
        pass

    def start_offsets(self, topics: Iterable[str], startup: StartPosition) -> Offsets:
        at = self.first if startup.mode == "earliest-offset" else startup.timestamp_ms - HOUR
        return {topic: {0: max(self.first, at), 1: max(self.first, at)} for topic in topics}

    def compacts_within(self, topic: str, milliseconds: int) -> bool:
        return self.compacted


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: str, change: str, *, gone: int = 0, began: int = 0, **more: Any
) -> BackfillRange:
    """What is found for a query that has read `orders` from `began` to 40 and 50."""
    monkeypatch.setattr(backfill, "Cluster", type("Cluster", (_Cluster,), {"first": gone, **more}))
    text = BEFORE
    for old, new in CHANGES[change].replaced.items():
        text = text.replace(old, new)
    before, after = program_of(BEFORE), program_of(text)
    files = FolderFiles(str(folder))
    lines = [json.dumps({s.table.name: {"0": 40, "1": 50}}) for s in before.sources]
    files.put("offsets/3", ["\n".join(["v1", "{}", *lines, "-"]).encode()])
    files.put("commits/3", [b"v1\n{}"])
    for position, source in enumerate(before.sources):
        files.put(f"sources/{position}/0", [json.dumps({source.table.name: {"0": began, "1": began}}).encode()])
    part = backfill_part(after, before.meaning)
    address = SimpleNamespace(librdkafka={})
    deployment: Any = SimpleNamespace(
        program=part.program, source_addresses={s.id: address for s in part.program.sources}
    )
    return backfill_range(deployment, part, BackfillStart.of(at), files, positions_in(before.meaning))


def test_it_starts_at_the_place_that_is_given_and_not_behind_what_the_query_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, gone, start, notes in (
        (EARLIEST, 7, {"0": 7, "1": 7}, ["76 records are read again", "gone from Kafka: orders/0 before offset 7"]),
        (str(HOUR + 45), 0, {"0": 40, "1": 45}, ["5 records are read again"]),
        ("1970-01-01T01:00:00.009Z", 0, {"0": 9, "1": 9}, ["72 records are read again"]),
    ):
        found = asked(tmp_path, monkeypatch, at, "another window", gone=gone)
        assert not found.refusals
        assert [json.loads(each) for each in found.starts.values()] == [{"orders": start}]
        for shown, note in zip(found.notes, notes, strict=True):
            assert note in shown


@pytest.mark.parametrize(
    ("at", "gone", "began", "reason"),
    [
        (EARLIEST, 0, 0, None),
        (BEGINNING, 0, 5, None),
        (EARLIEST, 0, 5, "was read from offset 5, not 0 .say --from beginning"),
        (str(HOUR + 30), 0, 0, "was read from offset 0, not 30"),
        (EARLIEST, 3, 0, "records that are gone from Kafka: partition 0 of orders was read from offset 0"),
        (BEGINNING, 8, 5, "was read from offset 5 and begins at 8 now"),
    ],
)
def test_where_something_that_is_kept_feeds_what_is_new_it_reads_the_same_records(
    at: str, gone: int, began: int, reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(tmp_path, monkeypatch, at, "a sink with updates is new", gone=gone, began=began)
    if reason is None:
        assert not found.refusals
        assert [json.loads(each) for each in found.starts.values()] == [{"orders": {"0": began, "1": began}}]
    else:
        assert any(re.search(reason, each) for each in found.refusals), found.refusals


def test_a_topic_that_is_compacted_is_noted_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = asked(tmp_path / "a", monkeypatch, EARLIEST, "another window", compacted=True)
    assert "topic orders is compacted" in alone.notes[0]
    assert not alone.refusals
    shared = asked(tmp_path / "b", monkeypatch, EARLIEST, "a sink with updates is new", compacted=True)
    assert "topic orders is compacted" in shared.refusals[0]


@pytest.mark.parametrize("text", ["yesterday", "2024-05-01T00:00:00", ""])
def test_a_place_that_says_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"zone|Invalid"):
        BackfillStart.of(text)
