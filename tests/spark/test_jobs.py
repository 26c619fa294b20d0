"""Jobs of one file: what becomes of each, and that one that gives up does not end the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from service.deployment.replanning import Cut, PlanKept
from service.deployment.start_clock import RIGHT, StartClock
from service.exit_codes import FAILED, OK, WRONG
from service.host.clock import ClockJumped
from service.kafka.errors import KafkaConfigError, KafkaUnreachable, MessageTooLarge, Refused, TransactionLost
from service.observability.progress import Progress
from service.plan.upgrade import Fate, Upgrade, Verdict
from service.spark.internals.failures import failure_of, note
from service.spark.supervision import jobs as supervised
from service.spark.supervision.failure_classes import is_of_memory
from service.spark.supervision.jobs import Jobs


class _Observer:
    """Writes down what is reported to it."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def gave_up(self, name: str, error: str, full: str, *, alone: bool) -> None:
        self.events.append(("gave up", name, alone))

    def failed(self, name: str, *_: Any) -> None:
        self.events.append(("failed", name))

    def replanned(self, name: str, batch: int, before: int, rows: int) -> None:
        self.events.append(("replanned", batch, before, rows))

    def kept_plan(self, name: str, reason: str) -> None:
        self.events.append(("kept", reason))

    def start_clock(self, name: str, ahead: float, doubt: str, hint: str) -> None:
        if doubt:
            self.events.append(("clock", ahead, doubt))

    def learned(self, name: str, topic: str, size: int) -> None:
        self.events.append(("learned", topic, size))

    def waiting(self, name: str, *_: Any) -> None:
        self.events.append(("waiting", name))

    def batch(self, name: str, progress: Progress) -> None:
        self.events.append(("batch", progress.batch))

    def upgraded(self, name: str, kept: int, dropped: list[str], notes: tuple[str, ...]) -> None:
        self.events.append(("upgraded", kept, dropped, notes))


class _Runner:
    def __init__(self) -> None:
        self.error: Exception | None = None
        self.ended = False
        self.killed = False
        self.rows = 4
        self.upgrade: Upgrade | None = None
        self.looks = self.plans = self.reports = 0
        self.errors: list[Exception] = []
        self.look_every = 0.0
        self.stopped = False
        self.jumped: ClockJumped | None = None
        self.clock = RIGHT
        self.known: set[int] = set()
        self.cleaned = False
        self.program = SimpleNamespace(sources=[])
        self.done: list[int] = []

    def clock_jumped(self) -> ClockJumped | None:
        return self.jumped

    def open(self) -> None:
        pass

    def start(self) -> None:
        pass

    def missing(self) -> None:
        return None

    def start_clock(self) -> StartClock:
        return self.clock

    def begun_in_vain(self) -> bool:
        return self.killed

    def remove_leftovers(self) -> None:
        self.cleaned = True

    def skipped_by_topic(self) -> list[tuple[str, str, int]]:
        return []

    def added_topics(self) -> dict[str, tuple[str, ...]]:
        return {}

    def waiting_topics(self) -> dict[str, tuple[str, ...]]:
        return {}

    def replan(self) -> Cut:
        self.rows //= 2
        if not self.rows:
            raise PlanKept("it cannot be made smaller", "skip it")
        return Cut(7, 2 * self.rows, self.rows)

    def learn(self, refused: Mapping[str, Sequence[int]]) -> Mapping[str, int]:
        """The first refusal of a size is news."""
        found = {topic: alone for topic, (alone, _) in refused.items() if alone not in self.known}
        self.known |= set(found.values())
        return found

    def active(self) -> bool:
        return True

    def finished(self) -> bool:
        if self.error is not None:
            raise self.error
        return self.ended

    def phase(self) -> None:
        return None

    def new_progress(self, after: int | None) -> list[Any]:
        new = [batch for batch in self.done if after is None or batch > after]
        return [
            {"batchId": batch, "timestamp": "2026-01-02T03:04:05.500Z", "durationMs": {}, "sources": []}
            for batch in new
        ]

    def records_of(self, batch: int) -> Mapping[str, float]:
        return {}

    def keep_pace(self, batch: int, records: int, seconds: float) -> None:
        pass

    def sweep(self) -> None:
        pass

    def last_batch(self) -> int:
        return 7

    def hold(self) -> bool:
        return True

    def waiting(self) -> dict[str, tuple[str, ...]]:
        return {}

    def planning(self) -> bool:
        self.looks += 1
        return self.looks <= self.plans

    def batch_begun(self) -> bool:
        self.looks += 1
        if self.errors:
            raise self.errors.pop(0)
        return False

    def unreported(self) -> bool:
        self.reports -= 1
        return self.reports >= 0

    def stop(self) -> None:
        self.stopped = True


def jobs(count: int, attempts: int = 0) -> tuple[Jobs, list[_Runner], _Observer]:
    """Jobs without a JVM that are all running."""
    made, observer = object.__new__(Jobs), _Observer()
    still = SimpleNamespace(
        take=lambda: None, poll=lambda: None, look=lambda: None, close=lambda: None, batch=lambda _: None
    )
    runners = [_Runner() for _ in range(count)]
    observer.at = observer.finished = observer.started = lambda *_: None  # type: ignore[attr-defined]
    state = {
        "_settings": SimpleNamespace(retry=SimpleNamespace(attempts=attempts, backoff=0)),
        "_observer": observer,
        "_jvm": SimpleNamespace(process=still),
        "_driver_metrics": still,
        "_executors": still,
        "_session": SimpleNamespace(stop=lambda: None),
        "_watched": [
            SimpleNamespace(
                runner=runner,
                name=f"j{i}",
                deployment=None,
                failures=0,
                start_at=None,
                done=False,
                code=OK,
                look_at=0.0,
                last_batch=None,
                begun=False,
                waiting={},
                ends=still,
                read=still,
            )
            for i, runner in enumerate(runners)
        ],
    }
    for name, value in state.items():
        setattr(made, name, value)
    return made, runners, observer


def test_a_changed_query_that_goes_on_says_what_it_drops():
    made, runners, observer = jobs(2)
    for job in made._watched:
        job.start_at = 0.0
    verdicts = (Verdict("group_by_1", Fate.KEPT), Verdict("top_n_1", Fate.GONE, "its state is dropped"))
    runners[1].upgrade = Upgrade(verdicts, ("table best is no longer written",), ())
    made.look()
    assert observer.events == [("upgraded", 1, ["top_n_1"], ("table best is no longer written",))]


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([RuntimeError("x"), None], FAILED),
        ([KafkaConfigError("x"), None], WRONG),
        ([KafkaConfigError("x"), RuntimeError("KafkaConfigError: x")], FAILED),
        ([None, None], OK),
    ],
)
def test_the_exit_code_says_at_the_end_what_became_of_the_jobs(errors: list[Exception | None], code: int):
    made, runners, observer = jobs(2)
    runners[0].error = errors[0]
    assert made.look() is None
    runners[1].error, runners[1].ended = errors[1], True
    runners[0].ended = True
    assert made.look() == code
    given_up = [event for event in observer.events if event[0] == "gave up"]
    assert given_up == [("gave up", f"j{i}", i == 1) for i, error in enumerate(errors) if error is not None]


def test_a_batch_that_is_done_just_before_its_query_fails_is_reported_once_and_is_no_failure():
    made, [runner], observer = jobs(1, attempts=1)
    for batch in (4, 5, 6):
        runner.done.append(batch)
        runner.error = RuntimeError("the next batch failed")
        assert made.look() is None
        made._watched[0].start_at = runner.error = None
        assert made.look() is None
    assert observer.events == [event for batch in (4, 5, 6) for event in (("batch", batch), ("failed", "j0"))]


def test_a_kafka_that_cannot_be_reached_is_no_failure():
    made, runners, observer = jobs(1)
    runners[0].error = KafkaUnreachable("no broker answers")
    assert [made.look() for _ in range(5)] == [None] * 5
    assert set(observer.events) == {("waiting", "j0")}


def test_a_clock_that_jumped_is_waited_out_and_said():
    made, runners, observer = jobs(1)
    runners[0].error = ClockJumped("the clock of this machine went ahead by 365 days")
    assert [made.look() for _ in range(3)] == [None] * 3
    assert observer.events == [("failed", "j0")], "the next try is a minute away"


def test_what_fails_while_the_clock_is_wrong_is_the_clocks_and_no_failure():
    made, runners, observer = jobs(1, attempts=1)
    runners[0].error = TransactionLost("tailrace.markers refused the records", "the broker refuses the time")
    runners[0].jumped = ClockJumped("the clock of this machine went ahead by 365 days")
    assert [made.look() for _ in range(3)] == [None] * 3
    assert observer.events == [("failed", "j0")], "the next try is a minute away"


@pytest.mark.parametrize(
    ("error", "of_memory"),
    [
        (MemoryError(), True),
        (pa.ArrowMemoryError("malloc of size 68719476736 failed"), True),
        (duckdb.OutOfMemoryException("failed to allocate data of size 2.0 GiB"), True),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), True),
        (ValueError("out of memory lane"), False),
        (ValueError("Python worker exited unexpectedly"), False),
    ],
)
def test_failures_for_want_of_memory_are_known(error: Exception, of_memory: bool):
    assert is_of_memory(failure_of(error)) is of_memory


def test_a_batch_that_does_not_fit_is_cut_as_long_as_it_can_be_and_then_fails_as_others_do():
    made, runners, observer = jobs(1, attempts=1)
    runners[0].error = RuntimeError("java.lang.OutOfMemoryError: Java heap space")
    while made.look() is None:
        pass
    assert observer.events == [
        ("replanned", 7, 4, 2),
        ("failed", "j0"),
        ("replanned", 7, 2, 1),
        ("failed", "j0"),
        ("kept", "it cannot be made smaller\n  hint:   skip it"),
        ("failed", "j0"),
        ("kept", "it cannot be made smaller\n  hint:   skip it"),
        ("gave up", "j0", True),
    ]


def test_a_refusal_that_is_learned_of_is_no_failure_and_one_that_is_no_news_is():
    def refused(alone: int) -> MessageTooLarge:
        error = MessageTooLarge("topic t refused the records", refused={"t": Refused(alone)})
        error.writer = 0
        note(error)
        return error

    made, [runner], observer = jobs(1)
    for size in (500, 400):
        runner.error = RuntimeError("\n".join(["failed", *refused(size).__notes__]))
        assert made.look() is None
        made._watched[0].start_at = None
    assert observer.events == [("learned", "0/t", 500), ("failed", "j0"), ("learned", "0/t", 400), ("failed", "j0")]
    assert made.look() == FAILED
    assert observer.events[-1] == ("gave up", "j0", True)


@pytest.mark.parametrize("killed", [True, False])
def test_a_batch_that_others_were_killed_in_is_cut_before_it_is_begun(killed: bool):
    made, runners, observer = jobs(1)
    made._watched[0].start_at, runners[0].killed = 0.0, killed
    assert made.look() is None
    assert observer.events == [("replanned", 7, 4, 2)] * killed
    assert not runners[0].cleaned, "that is part of it"


@pytest.mark.parametrize("killed", [True, False])
def test_what_others_left_of_a_batch_that_cannot_be_cut_goes_before_it_is_begun(killed: bool):
    made, runners, _ = jobs(1)
    made._watched[0].start_at, runners[0].killed, runners[0].rows = 0.0, killed, 1
    assert made.look() is None
    assert runners[0].cleaned is killed


def test_a_batch_that_is_about_to_be_planned_at_a_stop_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supervised, "STATUS_DELAY", 0.0)
    made, [runner], _ = jobs(1)
    runner.plans = 3
    made.close(grace=60)
    assert runner.looks == 5, "three while it plans, one after, and only then one at the log"
    assert runner.stopped


def test_the_report_of_a_batch_that_was_just_done_is_waited_for_at_a_stop():
    made, [runner], _ = jobs(1)
    runner.reports = 2
    made.close(grace=60)
    assert runner.reports == -1, "it has arrived at the third look"
    assert runner.stopped


def test_a_clock_in_doubt_is_reported_and_the_query_starts_all_the_same():
    made, [runner], observer = jobs(1)
    made._watched[0].start_at = 0.0
    runner.clock = StartClock(86_400.0, "ahead", "set it right")
    assert made.look() is None
    assert observer.events == [("clock", 86_400.0, "ahead")]
    assert made._watched[0].start_at is None


def of_the_store() -> Py4JJavaError:
    """As it is raised where the JVM could not list a folder."""
    return Py4JJavaError("listing failed", SimpleNamespace(_target_id="o1", _gateway_client=None))


def test_a_store_that_does_not_answer_at_a_stop_is_asked_again():
    made, [runner], _ = jobs(1)
    runner.errors = [of_the_store(), of_the_store()]
    made.close(grace=60)
    assert runner.looks == 4, "one at the plan, three at the log"
    assert runner.stopped


def test_a_job_that_fails_at_a_stop_does_not_keep_the_others_from_stopping():
    made, runners, _ = jobs(2)
    runners[0].errors = [Py4JError("gone")]
    made.close(grace=60)
    assert [runner.stopped for runner in runners] == [True, True]
    assert runners[1].looks == 2
