"""Services in every condition that somebody may find one in, for the page to show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tests.page.stage import COUNTS, SPENDING, Stage

SAMPLE = {
    "reason": "bad-json",
    "detail": "unexpected end of data at byte 41",
    "origin": "orders/2, offset 48113",
    "value": '{"order_id": 48113, "user_id": "ann", "am',
    "whole": True,
    "late": False,
}
LATE = {
    "reason": "late",
    "detail": "",
    "origin": "window_aggregate_1",
    "value": '{"user_id":"dee","ts":"2026-11-18 10:58:01.250","_weight":1}',
    "whole": True,
    "late": True,
}
ERROR = """PythonException: An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1247, in main
    process()
  File "/app/service/spark/query/transactions.py", line 78, in commit
    self._metrics.count("transactions_total", outcome=transaction.commit(digest))
  File "/app/service/kafka/writer/client.py", line 96, in commit
    raise WriterFailure(answer.reason)
service.kafka.errors.KafkaFailure: cities/3: the record is larger than the broker takes (message.max.bytes)
"""


def fine() -> Stage:
    """Two sources, a join, windows; an hour of it, with ups and downs."""
    stage = Stage(SPENDING, environment={"TAILRACE_BATCH__TRIGGER": "2s", "TAILRACE_TOPICS__LATE": "late"})
    stage.start()
    for number in range(380):
        wave = 1 + 0.6 * math.sin(number / 40)
        _batch(stage, number, [round(260 * wave), round(240 * wave), round(250 * wave)], seconds=0.7 + 0.3 * wave)
        stage.pass_time(8)
    return stage


def behind() -> Stage:
    """Batches take longer and longer, most unread rows are in one partition, and another is far behind in time."""
    stage = Stage(SPENDING, environment={"TAILRACE_BATCH__TRIGGER": "5s"})
    stage.start()
    for number in range(300):
        unread = {"orders": [200 * number, 10, 20], "users": [0]}
        samples = [SAMPLE, LATE] if number % 90 == 80 else []
        counts = {
            'dead_letter_records_total{topic="tailrace.dead-letter",reason="bad-json"}': float(len(samples)),
            'late_records_total{operator="window_aggregate_1"}': float(len(samples)),
        }
        _batch(
            stage, number, [900, 30, 20], seconds=4 + number / 40, unread=unread, counts=counts, samples=samples,
            watermarks={"orders": [900, 4, 6]}, state={"join_1": 400_000 + 2_000 * number, "group_by_1": 1_200},
        )  # fmt: skip
    return stage


def failing() -> Stage:
    """The third attempt in a row has failed."""
    stage = fine()
    for attempt in range(1, 4):
        stage.pass_time(2**attempt)
        summary = ERROR.strip().splitlines()[-1]
        stage.observer.failed("spending", summary, attempt, 2.0 ** (attempt + 1), ERROR)
    stage.pass_time(5)
    return stage


def empty() -> Stage:
    """The process has just begun: no job is known yet."""
    return Stage(SPENDING)


def starting() -> Stage:
    """Spark starts; the first batch is not done."""
    stage = Stage(SPENDING)
    stage.start()
    stage.pass_time(9)
    return stage


def several() -> Stage:
    """Four jobs: one keeps up, one waits for Kafka, one has ended, one has given up."""
    others = [COUNTS.replace("'counts'", f"'counts_{name}'").replace("clicks", name) for name in ("eu", "us", "asia")]
    stage = Stage(SPENDING, *others)
    stage.start()
    for number in range(120):
        _batch(stage, number, [300, 250, 260])
        for name in ("eu", "us", "asia"):
            stage.play(f"counts_{name}", {name: [40, 50]}, seconds=0.4, state={"group_by_1": 900 + number})
    stage.observer.waiting("counts_eu", "kafka-eu:9092 does not answer: connection refused")
    stage.observer.finished("counts_us")
    stage.observer.gave_up("counts_asia", ERROR.strip().splitlines()[-1], ERROR)
    return stage


def _batch(stage: Stage, number: int, orders: list[int], **batch: object) -> None:
    """A batch of the job 'spending'."""
    with_defaults: dict[str, object] = {
        "seconds": 1.0,
        "state": {"join_1": 20_000 + 3 * number, "group_by_1": 1_200, "window_aggregate_1": 90 + number % 60},
        "watermarks": {"orders": [4.0, 6.0, 5.0]},
        **batch,
    }
    stage.play("spending", {"orders": orders, "users": [number % 3]}, **with_defaults)  # type: ignore[arg-type]


SCENES: Mapping[str, Callable[[], Stage]] = {
    scene.__name__: scene for scene in (fine, behind, failing, empty, starting, several)
}
