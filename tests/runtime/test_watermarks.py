"""What tasks and levels tell each other of time and of what a batch was made from, and which shard has which slots."""

from __future__ import annotations

import numpy as np
import pytest

from operators.slots import SLOTS, first_hash
from operators.time import END_OF_TIME, MIN_TIME
from service.kafka.writer.marker import PLAN
from service.runtime.layout import Layout
from service.runtime.partition_clocks import PartitionClock, from_bytes, newest, to_bytes
from service.runtime.source_digest import brief, digest, digest_range, union
from service.runtime.watermarks import LONGEST_GAP, SourceClock, Tick, Watermark, WatermarkTracker, combine
from service.settings import MOST_TASKS

A, B = "s0000/t/00000", "s0000/t/00001"


def test_a_source_says_nothing_of_time_before_it_knows_its_partitions() -> None:
    clock = SourceClock(idle_timeout=0)
    clock.observe(A, 100, running=0)
    assert clock.read(0) == Watermark(MIN_TIME, False)


def test_the_watermark_is_the_least_of_the_partitions_and_never_goes_back() -> None:
    clock = SourceClock(idle_timeout=0)
    clock.learn((A, B), ended=False, running=0)
    clock.observe(A, 100, running=0)
    assert clock.read(0).time == MIN_TIME
    clock.observe(B, 40, running=0)
    assert clock.read(0).time == 40
    clock.observe(B, 30, running=0)
    assert clock.read(0).time == 40
    clock.observe(B, 200, running=0)
    assert clock.read(0).time == 100


def test_a_silent_partition_holds_the_watermark_until_its_timeout_and_comes_back() -> None:
    clock = SourceClock(idle_timeout=1_000)
    clock.learn((A, B), ended=False, running=0)
    clock.observe(A, 100, running=500)
    assert clock.read(999).time == MIN_TIME
    assert clock.read(1_000) == Watermark(100, False)  # B has said nothing for a second
    clock.observe(B, 20, running=1_100)
    clock.observe(A, 300, running=1_100)
    assert clock.read(1_100).time == 100  # B holds it again, but it does not go back


def test_a_source_whose_partitions_are_all_silent_is_idle_and_its_watermark_stays() -> None:
    clock = SourceClock(idle_timeout=1_000)
    clock.learn((A,), ended=False, running=0)
    clock.observe(A, 100, running=0)
    clock.read(0)
    assert clock.read(5_000) == Watermark(100, True)


def test_a_source_that_has_ended_is_at_the_end_of_time() -> None:
    clock = SourceClock(idle_timeout=0)
    clock.learn((A,), ended=True, running=0)
    assert clock.read(0) == Watermark(END_OF_TIME, False)


@pytest.mark.parametrize(
    ("readings", "together"),
    [
        ([Watermark(5, False), Watermark(9, False)], Watermark(5, False)),
        ([Watermark(5, True), Watermark(9, False)], Watermark(9, False)),
        ([Watermark(5, True), Watermark(9, True)], Watermark(9, True)),
    ],
)
def test_two_inputs_agree_on_the_lesser_time_of_those_that_are_not_idle(
    readings: list[Watermark], together: Watermark
) -> None:
    assert combine(readings) == together


def test_running_time_stands_still_while_the_job_does() -> None:
    clocks = WatermarkTracker({})
    clocks.begin_batch(1_000)
    clocks.begin_batch(1_400)
    assert clocks.running == 400
    clocks.begin_batch(3_600_000)
    assert clocks.running == 400 + LONGEST_GAP


def test_clocks_are_the_same_after_they_were_saved() -> None:
    clocks = WatermarkTracker({0: SourceClock(1_000)}, previous={"sum": 70})
    clocks.begin_batch(1_000)
    clocks.sources[0].learn((A, B), ended=False, running=0)
    clocks.sources[0].observe(A, 100, running=0)
    again = WatermarkTracker({0: SourceClock(1_000)})
    again.restore(clocks.save())
    assert again == clocks


def test_a_tick_survives_its_payload() -> None:
    tick = Tick({0: (A, B), 2: ()}, (2,), (0,))
    assert Tick.from_bytes(tick.to_bytes()) == tick


@pytest.mark.parametrize("watermarks", [(MIN_TIME, MIN_TIME, MIN_TIME), (MIN_TIME, 0, END_OF_TIME), (70, 127, -128)])
@pytest.mark.parametrize("partitions", [(0, 1, 2), (127, 128, 2**31 - 1)])
def test_clocks_of_partitions_survive_their_payload(
    watermarks: tuple[int, int, int], partitions: tuple[int, int, int]
) -> None:
    clocks = [
        PartitionClock(topic, partition, watermark, digest_range(A, 0, watermark, 1))
        for topic, partition, watermark in zip(("t", "t", "ä" * 200), partitions, watermarks, strict=True)
    ]
    assert list(from_bytes(to_bytes(clocks), newest(clocks))) == clocks


def test_a_partition_that_is_not_read_yet_is_not_idle() -> None:
    clock = SourceClock(1_000)
    clock.learn((A, B), ended=False, running=0, waiting=True)
    clock.learn((A, B), ended=False, running=5_000, waiting=True)
    assert not clock.read(5_999).idle
    clock.observe(A, 100, running=5_500)
    assert clock.read(6_000) == (100, False), "once it is read, silence counts"


def test_a_digest_depends_on_the_rows_and_not_on_how_often_or_in_what_order_they_were_named() -> None:
    one, two = digest_range(A, 0, 9, 10), digest_range(B, 5, 7, 3)
    assert digest(1, [one, two]) == digest(1, [two + one, one])
    assert union([two, one, two]) == b"".join(sorted([one, two]))


def test_a_batch_whose_records_are_gone_is_distinguished_from_one_that_was_replanned() -> None:
    before = digest(1, [digest_range(A, 0, 9, 10)])
    for compacted in (digest_range(A, 0, 9, 9), digest_range(A, 1, 9, 9), digest_range(A, 0, 8, 9)):
        assert digest(1, [compacted]) != before
        assert digest(1, [compacted])[:PLAN] == before[:PLAN]
    assert digest(2, [digest_range(A, 0, 9, 10)])[:PLAN] != before[:PLAN]


def test_what_a_level_passes_on_is_one_mark_whatever_it_received() -> None:
    one, two = digest_range(A, 0, 9, 10), digest_range(B, 5, 7, 3)
    assert len(brief([one, two])) == len(one)
    assert brief([two, one, one]) == brief([one, two])
    assert brief([one]) != brief([two])
    assert brief([b"", b""]) == b""


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 64, 256, 4096, 5000])
def test_each_slot_is_served_by_one_shard_and_no_shard_has_two_more_than_another(shards: int) -> None:
    layout = Layout.of(shards)
    served = [layout.slots_of(shard) for shard in range(layout.shards)]
    assert [slot for each in served for slot in each] == list(range(SLOTS))
    for shard, each in enumerate(served):
        hashes = np.array([first_hash(each.start), first_hash(each.stop) - 1], dtype=np.uint64)
        assert layout.shard_of(hashes).tolist() == [shard, shard]
    assert max(map(len, served)) - min(map(len, served)) <= 1


def test_there_may_be_as_many_tasks_as_slots() -> None:
    assert MOST_TASKS == SLOTS


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (1, 4), (7, 5), (64, 256)])
def test_a_shard_shares_slots_with_those_that_had_them(before: int, after: int) -> None:
    had, layout = Layout(before), Layout(after)
    for shard in range(after):
        mine = set(layout.slots_of(shard))
        assert list(had.sharing(layout.slots_of(shard))) == [s for s in range(before) if mine & set(had.slots_of(s))]
