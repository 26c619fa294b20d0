"""What the page says of a job that is slow, stuck or fine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.page.stage import COUNTS, SPENDING, Stage

EVEN = {"clicks": [100, 100, 100, 100]}


def playing(batches: int = 30, environment: dict[str, str] | None = None, **batch: Any) -> Stage:
    stage = Stage(COUNTS, environment=environment)
    stage.start()
    for _ in range(batches):
        stage.play("counts", **{"rows": EVEN, **batch})
    return stage


def verdict(stage: Stage, job: int = 0) -> tuple[str, str]:
    found = stage.json()["jobs"][job]["verdict"]
    return found["grade"], found["headline"]


def finding(stage: Stage, about: str, job: int = 0) -> dict[str, str]:
    """The only finding about something."""
    (found,) = findings(stage, about, job)
    return found


def findings(stage: Stage, about: str, job: int = 0) -> list[dict[str, str]]:
    return [f for f in stage.json()["jobs"][job]["verdict"]["findings"] if f["about"] == about]


def test_a_job_that_reads_all_that_comes_keeps_up():
    stage = playing()
    assert verdict(stage) == ("good", "Keeps up")
    assert finding(stage, "backlog")["text"] == "Every batch reads all that has come: 400 rows a second"
    assert [f for f in stage.json()["jobs"][0]["verdict"]["findings"] if f["grade"] in ("watch", "trouble")] == []


def test_a_job_falls_behind_when_more_and_more_rows_wait_and_it_has_no_reserve():
    stage = playing(batches=0)
    for number in range(60):
        stage.play("counts", EVEN, unread={"clicks": [150 * number] * 4})
    assert verdict(stage) == ("trouble", "Falls behind")
    found = finding(stage, "backlog")
    assert found["grade"] == "trouble"
    assert found["text"] == (
        "Rows come faster than they are read: 35,800 were waiting when the last batch began, 36,000 more each minute"
    )
    assert stage.json()["jobs"][0]["verdict"]["findings"][0]["about"] == "backlog", "a trouble comes first"
    assert finding(stage, "phases")["grade"] == "watch"


def test_a_job_that_has_time_left_does_not_fall_behind():
    stage = playing(batches=0)
    for number in range(60):
        stage.play("counts", EVEN, unread={"clicks": [150 * number] * 4})
        stage.pass_time(1)
    assert verdict(stage) == ("good", "Keeps up")


def test_a_job_that_catches_up_says_for_how_long():
    stage = playing(batches=0)
    for number in range(60):
        stage.play("counts", EVEN, unread={"clicks": [150 * (100 - number)] * 4})
    assert verdict(stage) == ("watch", "Catches up")
    assert finding(stage, "backlog")["text"] == (
        "25,000 rows were waiting when the last batch began, 36,000 fewer each minute;"
        " at this pace none is left in 42 s"
    )


def test_rows_that_wait_but_grow_no_more_are_only_noted():
    found = finding(playing(unread={"clicks": [500] * 4}), "backlog")
    assert (found["grade"], found["text"]) == ("note", "The last batch left 2,000 rows, about as many as those before")


def test_rows_that_have_come_since_the_last_batch_began_are_no_backlog():
    stage = playing()
    stage.observer.ends("counts", "clicks", {"clicks": {0: 9_000, 1: 3_100, 2: 3_100, 3: 3_100}})
    assert stage.json()["jobs"][0]["pace"]["lag"] == 6_300
    assert finding(stage, "backlog")["grade"] == "good"
    assert findings(stage, "hot partition") == []


@pytest.mark.parametrize(
    ("trigger", "took", "grade", "text"),
    [
        ("5s", 2.0, "good", "A batch takes 2.0 s of the 5.0 s between two triggers"),
        ("1s", 2.0, "watch", "A batch takes 2.0 s, longer than the trigger of 1.0 s: batches run one after the other"),
        ("0", 2.0, "note", "A batch takes 2.0 s; one is running 100 % of the time"),
    ],
)
def test_the_time_of_a_batch_is_held_against_the_trigger(trigger: str, took: float, grade: str, text: str):
    found = finding(playing(environment={"TAILRACE_BATCH__TRIGGER": trigger}, seconds=took), "batches")
    assert (found["grade"], found["text"]) == (grade, text)


def test_a_batch_that_took_much_longer_than_the_others_is_reported():
    stage = playing(seconds=0.5)
    stage.play("counts", EVEN, seconds=8)
    assert finding(stage, "batches")["text"].startswith("A batch takes 500 ms (the slowest 8.0 s)")


def test_a_batch_that_is_large_over_all_tables_is_not_as_large_as_it_may_be():
    stage = Stage(SPENDING, environment={"TAILRACE_BATCH__ROWS": "500"})
    stage.start()
    stage.play("spending", {"orders": [300], "users": [300]})
    assert len(findings(stage, "batches")) == 1


def test_a_batch_as_large_as_it_may_be_is_reported():
    texts = [f["text"] for f in findings(playing(environment={"TAILRACE_BATCH__ROWS": "402"}), "batches")]
    assert texts[1] == "The last batch was as large as TAILRACE_BATCH__ROWS lets it be (402 rows of a table)"


@pytest.mark.parametrize(
    ("phases", "tasks", "says", "hint"),
    [
        (
            {"walCommit": 0.7, "addBatch": 0.2},
            {},
            "70 % of a batch goes to noting the offsets (700 ms each)",
            "storage",
        ),
        ({"latestOffset": 0.6, "addBatch": 0.3}, {}, "60 % of a batch goes to finding new rows", "brokers"),
        ({"addBatch": 0.9}, {"decode": 1.0, "write": 0.3}, "their time on decoding", "only the columns"),
        ({"addBatch": 0.9}, {"write": 1.0, "decode": 0.3}, "their time on writing to Kafka", "transaction"),
        ({"addBatch": 0.9}, {"operators": 0.1}, "83 % or more is Spark's own", "fewer shuffle partitions"),
    ],
    ids=["checkpoint", "offsets", "decode", "write", "spark"],
)
def test_the_phase_that_takes_most_is_named_with_what_helps(
    phases: dict[str, float], tasks: dict[str, float], says: str, hint: str
):
    found = finding(playing(phases=phases, tasks=tasks), "phases")
    assert says in found["text"]
    assert hint in found["hint"]


def test_batches_that_only_carry_the_time_do_not_blur_those_with_rows():
    stage = playing(batches=5, seconds=4)
    for _ in range(50):
        stage.play("counts", {"clicks": [0, 0, 0, 0]}, seconds=0.1)
    assert stage.json()["jobs"][0]["batches"]["median_seconds"] == 4


def test_the_partition_with_most_unread_rows_is_named():
    stage = playing(unread={"clicks": [200, 9_000, 300, 500]})
    found = finding(stage, "hot partition")
    assert found["text"] == "Partition 1 of clicks has 90 % of the 10,000 unread rows of clicks (4 partitions)"
    assert "key" in found["hint"]


def test_a_partition_that_gets_most_of_the_rows_is_noted_while_all_are_read():
    found = finding(playing(rows={"clicks": [10, 10, 970, 10]}), "hot partition")
    assert (found["grade"], found["text"][:38]) == ("note", "Partition 2 of clicks has 97 % of the ")


@pytest.mark.parametrize("unread", [[0, 900, 0, 0], [4_000, 3_000, 3_000, 3_000]], ids=["few rows", "spread"])
def test_no_partition_is_named_without_reason(unread: list[int]):
    assert findings(playing(unread={"clicks": unread}), "hot partition") == []


def spending(rows: list[int], watermarks: list[float | None], pipeline: str = SPENDING, kept: str = "join_1") -> Stage:
    stage = Stage(pipeline)
    stage.start()
    for _ in range(60):
        known = {"watermarks": {"orders": watermarks}}
        stage.play("spending", {"orders": rows, "users": [0]}, state={kept: 3} if kept else {}, **known)  # type: ignore[arg-type]
    return stage


def test_the_partition_that_holds_the_watermark_back_is_named():
    found = finding(spending([100, 100], [4, 300]), "watermark")
    assert found["text"].startswith("Partition 1 of orders holds the watermark of orders at 2026-11-18 ")
    assert found["text"].endswith(" UTC, 4 min 56 s behind the next partition")
    assert "older than those of the others" in found["hint"]


def test_a_silent_partition_that_holds_the_watermark_back_needs_an_idle_timeout():
    assert "scan.watermark.idle-timeout" in finding(spending([100, 0], [4, 300]), "watermark")["hint"]


def test_a_partition_without_any_row_yet_explains_a_missing_watermark():
    found = finding(spending([100, 0], [4, None], kept=""), "watermark")
    assert found["text"] == "No watermark yet for orders: it waits for every partition, and orders/1 had no rows"


def test_partitions_close_to_each_other_hold_nothing_back():
    assert findings(spending([100, 100], [4, 20]), "watermark") == []


def test_state_that_grows_without_a_bound_is_reported_with_the_step_that_keeps_it():
    stage = playing(batches=0)
    for number in range(90):
        stage.play("counts", EVEN, seconds=10, state={"group_by_1": 50_000 + 1_000 * number})
    found = finding(stage, "state")
    assert "grown by 89,000 rows to 139,000" in found["text"]
    assert "keeps the totals of each (who)" in found["text"]
    assert "table.exec.state.ttl" in found["hint"]


def test_state_with_a_bound_may_grow():
    bounded = "SET 'table.exec.state.ttl' = '1 d';" + COUNTS
    stage = Stage(bounded)
    stage.start()
    for number in range(90):
        stage.play("counts", EVEN, seconds=10, state={"group_by_1": 50_000 + 1_000 * number})
    assert findings(stage, "state") == []


def test_no_end_of_a_batch_for_a_long_time_is_compared_with_the_usual():
    stage = playing(seconds=4)
    stage.pass_time(11)
    assert verdict(stage) == ("good", "Keeps up"), "three batches long is nothing yet"
    stage.pass_time(34)
    assert verdict(stage) == ("trouble", "No batch ends")
    found = findings(stage, "batches")[0]["text"]
    assert found == "No batch has ended for 45 s, while those before took up to 4.0 s"


def test_waiting_for_kafka_says_why_and_for_how_long():
    stage = playing()
    stage.observer.waiting("counts", "the brokers at kafka:9092 do not answer")
    stage.pass_time(65)
    assert verdict(stage) == ("trouble", "Waiting for Kafka")
    found = finding(stage, "Kafka")["text"]
    assert found == "Kafka has not answered for 1 min 5 s: the brokers at kafka:9092 do not answer"


def test_a_failure_says_when_the_next_attempt_is_and_a_batch_that_is_done_later_remembers_it():
    stage = playing()
    stage.observer.failed("counts", "ValueError: no", 2, 8.0, "ValueError: no\n  at length")
    stage.pass_time(3)
    assert verdict(stage) == ("trouble", "Failed, will be tried again")
    assert finding(stage, "failure")["text"] == "Attempt 2 has failed; the next one is due in 5.0 s: ValueError: no"
    stage.observer.started("counts")
    stage.play("counts", EVEN)
    assert verdict(stage) == ("good", "Keeps up")
    assert finding(stage, "failure")["text"] == "A batch failed 4.0 s ago, and was done again: ValueError: no"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda o: o.gave_up("counts", "the state is another query's"), ("trouble", "Has given up")),
        (lambda o: o.finished("counts"), ("good", "Finished: all sources have ended")),
        (lambda o: o.stopping(), ("note", "Stopping")),
    ],
    ids=["gave up", "finished", "stopping"],
)
def test_the_end_of_a_job_is_its_headline(event: Any, expected: tuple[str, str]):
    stage = playing()
    event(stage.observer)
    assert verdict(stage) == expected


def test_a_service_that_stops_does_not_hide_that_a_job_has_given_up():
    stage = playing()
    stage.observer.gave_up("counts", "no")
    stage.observer.stopping()
    assert verdict(stage) == ("trouble", "Has given up")


def test_dead_letters_and_late_rows_are_reported_with_the_last_reason():
    bad = {
        "late": False,
        "reason": "bad-json",
        "detail": "",
        "origin": "clicks/0, offset 4",
        "value": "{",
        "whole": True,
    }
    stage = playing(batches=5)
    dead = {'dead_letter_records_total{topic="tailrace.dead-letter",reason="bad-json"}': 3}
    stage.play("counts", EVEN, counts={**dead, 'late_records_total{operator="group_by_1"}': 2}, samples=[bad])
    stage.pass_time(7)
    letters, late = finding(stage, "dead letters"), finding(stage, "late rows")
    assert letters["text"] == ("3 records or rows were sent to tailrace.dead-letter; the last 7.0 s ago: bad-json")
    assert late["text"] == "2 rows arrived behind the watermark and were left out (at group_by_1)"


def test_before_the_first_batch_there_is_nothing_to_say():
    stage = Stage(COUNTS)
    stage.announce()
    assert verdict(stage) == ("note", "Starting")
    stage.observer.started("counts")
    assert verdict(stage) == ("note", "Starting: the first batch is not done")
