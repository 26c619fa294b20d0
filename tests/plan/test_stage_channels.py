from __future__ import annotations

import pytest

from operators.time import END_OF_TIME, MIN_TIME
from service.runtime.source_digest import digest, digest_range, same_plan, union
from service.runtime.watermarks import LONGEST_GAP, SourceClock, Tick, Watermark, WatermarkTracker, combine
from service.spark.query.bucket_keys import bucket_keys, murmur3_of_int

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
    clocks = WatermarkTracker({0: SourceClock(1_000)}, previous={7: 70})
    clocks.begin_batch(1_000)
    clocks.sources[0].learn((A, B), ended=False, running=0)
    clocks.sources[0].observe(A, 100, running=0)
    again = WatermarkTracker({0: SourceClock(1_000)})
    again.restore(clocks.save())
    assert again == clocks


def test_a_tick_survives_its_payload() -> None:
    tick = Tick({0: (A, B), 2: ()}, (2,))
    assert Tick.from_json(tick.to_json()) == tick


def test_a_digest_depends_on_the_rows_and_not_on_how_often_or_in_what_order_they_were_named() -> None:
    one, two = digest_range(A, 0, 9, 10), digest_range(B, 5, 7, 3)
    assert digest(1, [one, two]) == digest(1, [two + one, one])
    assert union([two, one, two]) == b"".join(sorted([one, two]))


def test_a_batch_of_which_records_are_gone_is_told_apart_from_one_that_was_planned_anew() -> None:
    before = digest(1, [digest_range(A, 0, 9, 10)])
    for compacted in (digest_range(A, 0, 9, 9), digest_range(A, 1, 9, 9), digest_range(A, 0, 8, 9)):
        assert digest(1, [compacted]) != before
        assert same_plan(digest(1, [compacted]), before)
    assert not same_plan(digest(2, [digest_range(A, 0, 9, 10)]), before)


# What Spark's hash() answers for these numbers as INT.
@pytest.mark.parametrize(("number", "hashed"), [(0, 933211791), (1, -559580957), (2, 1765031574), (42, 29417773)])
def test_bucket_keys_are_hashed_as_spark_hashes_them(number: int, hashed: int) -> None:
    assert murmur3_of_int(number) == hashed


@pytest.mark.parametrize(("partitions", "each"), [(1, 1), (2, 1), (2, 3), (8, 2)])
def test_buckets_are_spread_evenly_over_the_partitions(partitions: int, each: int) -> None:
    keys = bucket_keys(partitions, each)
    assert len(set(keys)) == partitions * each
    assert [murmur3_of_int(key) % partitions for key in keys] == [b % partitions for b in range(len(keys))]
