"""What an older copy of a checkpoint lacks, and what is done about each of these batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.checkpoint.batch_log import ends, last, note_done, unfinished
from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.files import FolderFiles, StateMissing, StoredAt
from service.checkpoint.small_files import PLAN_NUMBER, SmallFiles
from service.checkpoint.version import LevelState, Version
from service.deployment import rolling_forward
from service.deployment.replanning import SKIPPED
from service.deployment.rolling_forward import ENDS, READERS, SHARDS, RollForward, TooOld, note_ends, roll_forward
from service.kafka.writer.marker import Marker
from service.kafka.writer.written import Written
from tests.checkpoint.test_batch_log import TICK, planned, written

STATE = Version({1: LevelState({"time": 1}, (StoredAt("a", 0, 4),))})
AT = {"batchTimestampMs": 77}


def plan(number: int, **more: Any) -> BatchPlan:
    """Of a job with a topic of one partition, of which each batch takes ten records."""
    made = BatchPlan(
        number, (f'{{"t":{{"0":{10 * (number + 1)}}}}}', TICK), AT, shards=2, readers=0, plan=0, digest="aa"
    )
    return replace(made, **more)


class Copy:
    """A copy that ends with batch 3, and what Kafka tells of its job."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in (2, 3):
            planned(folder, number, f'{{"t":{{"0":{10 * (number + 1)}}}}}', TICK)
            written(folder, f"commits/{number}", "v1", '{"nextBatchWatermarkMs":0}')
        self.files = FolderFiles(str(folder))
        self.memory = SmallFiles(self.files)
        STATE.write(self.files, 3)
        for name, value in (("id", "c1"), (SHARDS, 2)):
            self.memory.write(name, value)
        self.markers: dict[int, Marker] = {}
        self.plans: list[tuple[int, BatchPlan]] = []
        self.looked_from: list[dict[int, int] | None] = []
        self.length = 100
        monkeypatch.setattr(rolling_forward, "written", lambda writer, since=None: self._written(since))
        monkeypatch.setattr(rolling_forward, "Cluster", lambda kafka: self)

    def end_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: self.length} for topic in topics}

    def _written(self, since: dict[int, int] | None) -> Written:
        """All batches that have plans lie at the end of the topic."""
        self.looked_from.append(since)
        packed: dict[int, tuple[bytes, ...]] = {}
        for place, each in self.plans:
            packed[place] = (*packed.get(place, ()), each.to_bytes())
        found = Written(self.markers, packed) if (since or {0: 0})[0] < self.length else Written()
        return replace(found, ends={0: self.length})

    def look(self, *, levels: int = 1, asks: str = "") -> RollForward | None:
        source = SimpleNamespace(
            id=0, table=SimpleNamespace(name="t", connector=SimpleNamespace(kind="kafka", topic_pattern=None))
        )
        lookup = SimpleNamespace(table=SimpleNamespace(name=asks)) if asks else None
        deployment: Any = SimpleNamespace(
            program=SimpleNamespace(sources=[source], levels=levels, operators=[SimpleNamespace(lookup=lookup)]),
            writers=SimpleNamespace(addresses=[SimpleNamespace(librdkafka={})]),
            writer=lambda *_: None,
            settings=SimpleNamespace(topics=SimpleNamespace(markers="marks")),
        )
        self.deployment = deployment
        return roll_forward(deployment, self.files, self.memory)

    def done(self, number: int) -> None:
        """As Spark would."""
        STATE.write(self.files, number)
        note_done(self.files, number)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    return Copy(tmp_path, monkeypatch)


def test_a_plan_is_read_as_it_was_written() -> None:
    made = plan(4, starts={"0": "x"}, skipped=({"batch": 4},))
    assert BatchPlan.from_bytes(made.to_bytes()) == made


def test_the_newest_checkpoint_lacks_nothing(copy: Copy) -> None:
    copy.markers = {0: Marker(3, b"d"), 1: Marker(3, b"d")}
    assert copy.look() is None
    planned(Path(copy.files._root), 4, '{"t":{"0":50}}', TICK)
    copy.markers[1] = Marker(4, b"d")
    assert copy.look() is None, "a batch that was cut short is done again by Spark"


def test_a_copy_that_lacks_answers_of_a_database_is_refused(copy: Copy) -> None:
    copy.markers = {0: Marker(3, b"d"), 1: Marker(3, b"d")}
    assert copy.look(asks="customers") is None, "the newest one has them"
    copy.markers[1], copy.length = Marker(5, b"d"), 200
    with pytest.raises(TooOld, match="customers would be queried again"):
        copy.look(asks="customers")


def test_the_missing_batches_are_planned_one_by_one_as_they_were(copy: Copy) -> None:
    copy.markers = {0: Marker(5, b"d"), 1: Marker(6, b"d"), 2: Marker(6, b"d")}
    later = {"shards": 3, "readers": 1}
    copy.plans = [(p, plan(n, **(later if n == 6 else {}))) for n in (3, 4, 5) for p in (0, 1)]
    copy.plans += [(p, plan(6, **later, digest=f"0{p}")) for p in (1, 2)]
    rolling = copy.look()
    assert rolling is not None
    assert (rolling.missing.first, rolling.missing.last) == (4, 6)
    assert rolling.missing.digests[6] == {1: "01", 2: "02"}
    for number in (4, 5, 6):
        assert rolling.plan_next() == number
        assert rolling.plan_next() == number, "until it is done"
        assert ends(copy.files, number)[0] == {"t": {"0": 10 * (number + 1)}}
        assert b'"batchTimestampMs": 77' in (copy.files.get(f"offsets/{number}") or b"")
        assert copy.memory.read(SHARDS) == (3 if number == 6 else 2)
        assert unfinished(copy.files) is not None
        copy.done(number)
    assert copy.memory.read(READERS) == 1
    assert rolling.plan_next() is None


def test_a_part_of_a_batch_in_a_task_that_the_copy_does_not_know_is_found(copy: Copy) -> None:
    copy.markers = {0: Marker(3, b"d"), 1: Marker(3, b"d"), 2: Marker(4, b"d")}
    copy.plans = [(2, plan(4, shards=3))]
    rolling = copy.look()
    assert rolling is not None
    assert rolling.plan_next() == 4


def test_a_look_begins_where_the_one_before_has_ended(copy: Copy) -> None:
    copy.markers = {0: Marker(3, b"d")}
    assert copy.look() is None
    copy.length = 200
    assert copy.look() is None
    planned(Path(copy.files._root), 4, '{"t":{"0":50}}', TICK)
    note_ends(copy.deployment, copy.files, -1)
    assert copy.look() is None
    assert copy.looked_from == [None, {0: 100}, {0: 200}]
    assert copy.memory.read(ENDS) == {"batch": 4, "plan": 0, "ends": [{"0": 200}]}


def test_ends_are_not_noted_before_the_batches_that_are_missing_are_planned(copy: Copy) -> None:
    """Who is killed in between finds them missing again."""
    copy.markers = {0: Marker(6, b"d")}
    copy.plans = [(0, plan(n)) for n in (4, 5, 6)]
    rolling = copy.look()
    assert rolling is not None
    for number in (4, 5, 6):
        assert rolling.plan_next() == number
        note_ends(copy.deployment, copy.files, rolling.missing.last)
        assert (copy.memory.read(ENDS) is not None) == (number == 6)
        assert (copy.look() is not None) == (number < 6)
        copy.done(number)


@pytest.mark.parametrize("newer", [{"batch": 4}, {"plan": 1}])
def test_ends_that_are_newer_than_the_copy_that_they_are_in_say_nothing(newer: dict[str, int], copy: Copy) -> None:
    copy.memory.write(ENDS, {"batch": 3, "plan": 0, "ends": [{"0": 100}]} | newer)
    copy.markers = {0: Marker(4, b"d", newer.get("plan", 0))}
    copy.plans = [(0, plan(4, plan=newer.get("plan", 0)))]
    assert copy.look() is not None
    assert copy.looked_from == [None]


def test_of_a_copy_the_whole_topic_is_read(copy: Copy) -> None:
    copy.memory.write(ENDS, {"batch": 3, "plan": 0, "ends": [{"0": 50}]})
    copy.markers = {0: Marker(4, b"d")}
    copy.plans = [(0, plan(4))]
    assert copy.look() is not None
    assert copy.looked_from == [{0: 50}, None]


def test_what_was_skipped_by_hand_is_skipped_again(copy: Copy) -> None:
    skipped = {"batch": 4, "table": "t", "topic": "t", "partition": 0, "start": 40, "end": 50, "at": 1.0, "why": "no"}
    copy.markers = {0: Marker(3, b"d", 1), 1: Marker(3, b"d", 1)}
    copy.plans = [(p, plan(4, plan=1, skipped=(skipped,))) for p in (0, 1)]
    rolling = copy.look()
    assert rolling is not None, "the plan number tells of it"
    assert rolling.plan_next() is None
    assert copy.memory.read(SKIPPED) == [skipped]
    assert copy.memory.read(PLAN_NUMBER) == 1
    assert last(copy.files, "commits") == 4
    assert Version.before(copy.files, 5) == STATE
    assert copy.look() is None


def test_a_batch_that_was_to_be_skipped_and_was_done_after_all_is_done(copy: Copy) -> None:
    copy.markers = {0: Marker(4, b"d", 1), 1: Marker(4, b"d", 1)}
    copy.plans = [(0, plan(4, plan=1, skipped=())), (1, plan(4, plan=1)), (0, plan(4, plan=1))]
    rolling = copy.look()
    assert rolling is not None
    assert rolling.plan_next() == 4


def test_with_state_a_batch_of_which_a_task_is_committed_was_never_skipped(copy: Copy) -> None:
    copy.markers = {0: Marker(4, b"d"), 1: Marker(3, b"d", 1)}
    copy.plans = [(0, plan(4)), (1, plan(4, plan=1, skipped=({"batch": 4},)))]
    rolling = copy.look(levels=1)
    assert rolling is not None
    assert rolling.plan_next() == 4
    assert copy.memory.read(SKIPPED) is None


def test_a_batch_of_which_some_tasks_were_skipped_is_not_done_by_these(copy: Copy) -> None:
    copy.memory.write(READERS, 2)
    skipped = {"batch": 4, "partly": "1 of 2 tasks had written theirs: 0"}
    copy.markers = {0: Marker(5, b"d", 1), 1: Marker(5, b"d", 1)}
    copy.plans = [(0, plan(4)), (1, plan(4, plan=1, skipped=(skipped,))), (0, plan(5, plan=1)), (1, plan(5, plan=1))]
    rolling = copy.look(levels=0)
    assert rolling is not None
    assert rolling.plan_next() == 5
    assert copy.memory.read(SKIPPED) == [skipped]


@pytest.mark.parametrize("known", [(), (5, 6), (4, 6)])
def test_a_copy_whose_batches_have_no_plans_is_refused(known: tuple[int, ...], copy: Copy) -> None:
    copy.markers = {0: Marker(6, b"d"), 1: Marker(6, b"d")}
    copy.plans = [(0, plan(n)) for n in known]
    with pytest.raises(
        TooOld, match="the copy ends with batch 3, batches up to 6 are committed; topic marks"
    ) as caught:
        copy.look()
    assert f"batch {min({4, 5, 6} - set(known))}\n" in str(caught.value)
    assert last(copy.files, "offsets") == 3


def test_without_state_a_batch_in_which_nothing_was_read_is_passed(copy: Copy) -> None:
    copy.memory.write(READERS, 2)
    copy.markers = {0: Marker(6, b"d")}
    where = '{"t":{"0":50}}'
    copy.plans = [(0, plan(3)), (0, plan(4)), (0, plan(6, starts={"0": where}))]
    rolling = copy.look(levels=0)
    assert rolling is not None
    assert rolling.plan_next() == 4
    copy.done(4)
    assert rolling.plan_next() == 6
    assert ends(copy.files, 5) == ends(copy.files, 4)
    assert last(copy.files, "commits") == 5


@pytest.mark.parametrize(
    ("begins", "passed"),
    [('{"t":{"0":40}}', True), ('{"t":{"0":40,"1":0},"u":{"0":3}}', True), ('{"t":{"0":60}}', False), (None, False)],
)
def test_without_state_a_batch_without_a_plan_is_passed_only_where_it_had_no_records(
    copy: Copy, begins: str | None, passed: bool
) -> None:
    """Its plan may be gone as well, since the plans of later batches have taken its place."""
    copy.memory.write(READERS, 2)
    copy.markers = {0: Marker(6, b"d")}
    copy.plans = [(0, plan(6, starts={} if begins is None else {"0": begins}))]
    if passed:
        rolling = copy.look(levels=0)
        assert rolling is not None
        assert rolling.plan_next() == 6
        return
    with pytest.raises(TooOld, match="does not have batch 4\n"):
        copy.look(levels=0)


def test_partitions_that_came_later_start_where_they_started_then(copy: Copy) -> None:
    came = plan(4, ends=('{"t":{"0":50},"u":{"0":9}}', TICK), starts={"0": '{"t":{"0":40},"u":{"0":5}}'})
    came.put(copy.files)
    assert ends(copy.files, 3)[0] == {"t": {"0": 40}, "u": {"0": 5}}
    assert BatchPlan.planned(copy.files, 4, shards=2, readers=0, plan=0, starts_of=[0]).starts == came.starts


def test_a_plan_shows_where_its_batch_begins_without_reading_the_batch_before_again(copy: Copy) -> None:
    def starts(before: BatchPlan | None) -> Any:
        made = BatchPlan.planned(copy.files, 3, shards=2, readers=0, plan=0, starts_of=[0], before=before)
        return dict(made.starts)

    assert starts(None) == {"0": '{"t":{"0":30}}'}
    assert starts(plan(2, ends=("known",))) == {"0": "known"}
    assert starts(plan(1, ends=("of another",))) == {"0": '{"t":{"0":30}}'}


def test_a_plan_needs_the_batch_before(copy: Copy) -> None:
    with pytest.raises(StateMissing):
        plan(9).put(copy.files)
