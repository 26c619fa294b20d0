"""What a record may have is asked of Kafka at each start, and is no larger than before while a batch is under way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from traceback import format_exception
from types import SimpleNamespace
from typing import Any

import pytest

from service.checkpoint.files import FolderFiles
from service.checkpoint.small_files import SmallFiles
from service.deployment import record_limits
from service.deployment.record_limits import Refusals, agree_on_rooms, limits_now, side_bytes, with_small_batches
from service.formats.record_size import RecordLimit
from service.kafka.errors import MessageTooLarge, Refused, from_message, to_message
from service.kafka.writer.writer_settings import WriterSettings
from service.record_packing import OVERHEAD
from service.spark.internals.failures import failure_of, note

WIDE, NARROW = RecordLimit("kept", 3_000_000, 3_000_000, "lz4"), RecordLimit("kept", 3_000_000, 100_000, "lz4")


def test_the_producer_and_the_topic_say_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: Mapping[str, int | None] = {"a": 5_000, "b": None, "dead": 9_000}
    monkeypatch.setattr(
        record_limits, "Cluster", lambda kafka: SimpleNamespace(largest_record=lambda topic: limits[topic])
    )
    properties = {"message.max.bytes": "3000000", "compression.type": "none"}
    assert limits_now(deployment({}, properties)) == {
        "0/a": RecordLimit("a", 1_000_000, 5_000, "lz4"),
        "1/b": RecordLimit("b", 3_000_000, None, None),
        "0/dead": RecordLimit("dead", 1_000_000, 9_000, "lz4"),
    }


def deployment(*addresses: Mapping[str, str]) -> Any:
    """That of a job which writes topic a and dead letters as writer 0, topic b as writer 1."""
    outputs = [
        SimpleNamespace(id=n, table=SimpleNamespace(connector=SimpleNamespace(topics=(t,))))
        for n, t in ((7, "a"), (8, "b"))
    ]
    return SimpleNamespace(
        program=SimpleNamespace(outputs=outputs),
        writers=SimpleNamespace(
            of_output={7: 0, 8: 1}, side=0, addresses=[SimpleNamespace(librdkafka=each) for each in addresses]
        ),
        settings=SimpleNamespace(topics=SimpleNamespace(dead_letter="dead", late="")),
        side_bytes=1_000_000,
    )


def test_until_a_batch_that_had_begun_is_done_no_more_fits_than_before(tmp_path: Path) -> None:
    store = SmallFiles(FolderFiles(str(tmp_path)))
    assert agree_on_rooms(store, {"0/kept": NARROW}, begun=True) == {"0/kept": NARROW}, "the first start"
    assert agree_on_rooms(store, {"0/kept": WIDE}, begun=True) == {"0/kept": NARROW}
    assert agree_on_rooms(store, {"0/kept": WIDE}, begun=True) == {"0/kept": NARROW}, "and killed again"
    assert agree_on_rooms(store, {"0/kept": WIDE}, begun=False) == {"0/kept": WIDE}
    assert agree_on_rooms(store, {"0/kept": NARROW}, begun=True) == {"0/kept": NARROW}, "a topic that takes less now"


@pytest.mark.parametrize(
    ("properties", "rooms", "side", "batch"),
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
    properties: dict[str, str], rooms: dict[str, RecordLimit], side: int | None, batch: str | None
) -> None:
    settings = WriterSettings(
        query="q", checkpoint_id="c", kafka=properties, marker_topic="m", socket_folder="", parent_pid=1
    )
    assert with_small_batches(settings, 0, rooms, side).kafka.get("batch.size") == batch


OPEN = {name: RecordLimit(name[2:], 1_000_000, None, "lz4") for name in ("0/a", "1/b", "0/dead")}
"""The rooms of a job that may not ask what its topics take."""


class Process:
    """A process that has the job, with what it has learned."""

    def __init__(self, folder: Path, *, begun: bool = True, now: Mapping[str, RecordLimit] = OPEN) -> None:
        self._store, self._now, self._refusals = SmallFiles(FolderFiles(str(folder))), now, Refusals()
        self.start(begun=begun)

    def start(self, *, begun: bool = True) -> None:
        wanted = self._refusals.applied(self._store, self._now)
        self.rooms = agree_on_rooms(self._store, wanted, begun=begun)

    def refused(self, **topics: tuple[int, int]) -> Mapping[str, int]:
        """What is learned where topics have refused that, for the next try."""
        numbers = {"a": 0, "b": 1, "dead": 0, "tailrace.markers": 0}
        learned = self._refusals.learn(deployment(), self.rooms, {f"{numbers[t]}/{t}": r for t, r in topics.items()})
        self.start()
        return learned


def test_no_record_as_large_as_one_that_was_refused_fits_any_more(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.refused(a=(5_000, 0)) == {"a": 5_000}
    assert process.rooms == {**OPEN, "0/a": replace(OPEN["0/a"], refused=5_000)}
    assert process.refused(a=(4_000, 0)) == {"a": 4_000}
    assert process.rooms["0/a"].taken == 3_999


def test_what_is_no_news_is_a_failure_like_others(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.refused(a=(5_000, 0)) == {"a": 5_000}
    assert process.refused(a=(5_000, 0)) == {}
    assert process.refused() == {}
    assert process.refused(a=(0, 1)) == {}, "a batch of one byte cannot be halved"
    assert process.refused(**{"tailrace.markers": (70_000, 0)}) == {}


def test_what_was_refused_holds_until_the_batch_that_had_begun_is_done_and_for_its_process(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.refused(a=(5_000, 0))
    process.start(begun=False)
    assert process.rooms["0/a"].refused == 5_000
    after = Process(tmp_path, begun=True)
    assert after.rooms["0/a"].refused == 5_000, "what was left out of a part that is committed is left out again"
    after.start(begun=False)
    assert after.rooms["0/a"].refused is None, "the topic may take more by now"


def test_batches_of_which_several_records_were_refused_become_half_as_large_for_good(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.refused(b=(0, 1_000_000)) == {"b": 500_000}
    assert process.rooms["1/b"].refused is None, "none is a dead letter for that"
    settings = WriterSettings(query="q", checkpoint_id="c", kafka={}, marker_topic="m", socket_folder="", parent_pid=1)
    size = with_small_batches(settings, 1, process.rooms, None).kafka["batch.size"]
    assert size == str(500_000 - OVERHEAD)
    assert process.refused(b=(0, int(size))) == {"b": int(size) // 2}
    assert Process(tmp_path, begun=False).rooms["1/b"].batch == int(size) // 2
    known = {**OPEN, "1/b": replace(OPEN["1/b"], stored=2_000_000)}
    assert Process(tmp_path, begun=False, now=known).rooms["1/b"].batch is None, "the topic says what it takes"


def test_dead_letters_are_cut_to_half_as_much(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert side_bytes(deployment(), process.rooms) == 1_000_000
    assert process.refused(dead=(900_000, 0)) == {"dead": 500_000}
    assert process.refused(dead=(0, 400_000)) == {"dead": 250_000}
    assert side_bytes(deployment(), process.rooms) == 250_000
    known = {**OPEN, "0/dead": replace(OPEN["0/dead"], stored=100_000)}
    assert side_bytes(deployment(), Process(tmp_path, begun=False, now=known).rooms) == 100_000 - OVERHEAD


def test_a_topic_that_says_what_it_takes_is_believed_but_for_a_record_of_less_that_it_refuses(tmp_path: Path) -> None:
    process = Process(tmp_path, now={**OPEN, "0/a": replace(OPEN["0/a"], stored=4_000)})
    assert process.refused(a=(5_000, 0)) == {}
    assert process.refused(a=(4_000, 0)) == {"a": 4_000}, "compression is estimated"
    assert process.rooms["0/a"].taken == 3_999


def test_what_was_refused_comes_from_the_writer_process_to_the_driver() -> None:
    sent = MessageTooLarge("topic t did not take", "detail", "hint", {"t": Refused(5, 0)})
    came = from_message(json.loads(json.dumps(to_message(sent))))
    assert isinstance(came, MessageTooLarge)
    assert (str(came), came.refused) == (str(sent), sent.refused)
    came.writer = 3
    failed = RuntimeError()  # what Spark keeps is the text
    note(came)
    failed.add_note("\n".join(came.__notes__))
    text = "".join(format_exception(failed))
    assert failure_of(RuntimeError(text)).for_driver == {"3/t": [5, 0]}
    assert "tailrace-for-driver" not in failure_of(RuntimeError(text)).text
