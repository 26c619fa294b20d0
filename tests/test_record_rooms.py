"""What a record may have is asked of Kafka at each start, and is no more than before while a batch is under way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.checkpoint.files import FolderFiles
from service.checkpoint.small_files import SmallFiles
from service.deployment import record_rooms
from service.deployment.record_rooms import agree_on_rooms, rooms_now, with_small_batches
from service.formats.record_size import OVERHEAD, RecordRoom
from service.kafka.writer.writer_settings import WriterSettings

WIDE, NARROW = RecordRoom("kept", 3_000_000, 3_000_000, "lz4"), RecordRoom("kept", 3_000_000, 100_000, "lz4")


def test_the_producer_and_the_topic_say_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: Mapping[str, int | None] = {"a": 5_000, "b": None}
    monkeypatch.setattr(
        record_rooms, "Cluster", lambda kafka: SimpleNamespace(largest_record=lambda topic: limits[topic])
    )
    outputs = [
        SimpleNamespace(id=n, table=SimpleNamespace(connector=SimpleNamespace(topics=(t,))))
        for n, t in ((7, "a"), (8, "b"))
    ]
    addresses = [{}, {"message.max.bytes": "3000000", "compression.type": "none"}]
    deployment: Any = SimpleNamespace(
        program=SimpleNamespace(outputs=outputs),
        writers=SimpleNamespace(
            of_output={7: 0, 8: 1}, addresses=[SimpleNamespace(librdkafka=each) for each in addresses]
        ),
    )
    assert rooms_now(deployment) == {
        "0/a": RecordRoom("a", 1_000_000, 5_000, "lz4"),
        "1/b": RecordRoom("b", 3_000_000, None, None),
    }


def test_until_a_batch_that_had_begun_is_done_no_more_fits_than_before(tmp_path: Path) -> None:
    store = SmallFiles(FolderFiles(str(tmp_path)))
    assert agree_on_rooms(store, {"0/kept": NARROW}, begun=True) == {"0/kept": NARROW}, "the first start"
    assert agree_on_rooms(store, {"0/kept": WIDE}, begun=True) == {"0/kept": NARROW}
    assert agree_on_rooms(store, {"0/kept": WIDE}, begun=True) == {"0/kept": NARROW}, "and killed again"
    assert agree_on_rooms(store, {"0/kept": WIDE}, begun=False) == {"0/kept": WIDE}
    assert agree_on_rooms(store, {"0/kept": NARROW}, begun=True) == {"0/kept": NARROW}, "a topic that takes less now"


@pytest.mark.parametrize(
    ("told", "rooms", "side", "batch"),
    [
        ({}, {"0/a": WIDE}, None, None),
        ({}, {"0/a": WIDE, "0/b": NARROW}, None, str(100_000 - OVERHEAD)),
        ({}, {"0/a": WIDE, "1/b": NARROW}, None, None),
        ({}, {}, 50_000, str(50_000 - OVERHEAD)),
        ({"batch.size": "16384"}, {"0/b": NARROW}, None, "16384"),
        ({"batch.size": "200000"}, {"0/b": NARROW}, None, str(100_000 - OVERHEAD)),
    ],
)
def test_batches_are_no_larger_than_each_topic_takes(
    told: dict[str, str], rooms: dict[str, RecordRoom], side: int | None, batch: str | None
) -> None:
    settings = WriterSettings(
        query="q", checkpoint_id="c", kafka=told, marker_topic="m", socket_folder="", parent_pid=1
    )
    assert with_small_batches(settings, 0, rooms, side).kafka.get("batch.size") == batch
