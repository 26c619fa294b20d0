"""Through real Kafka and real Spark: what comes out is what a batch query says of the same rows."""

from __future__ import annotations

from collections.abc import Callable

from tests.brokers import Broker, MakeTopic
from tests.spark.orders import answers, expected, orders, pipeline
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed

COUNT = 6_000


def test_a_statement_set_over_a_bounded_topic_ends_with_the_answer_of_a_batch_query(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, totals, windows, spread = (make_topic(n) for n in ("orders", "totals", "windows", "spread"))
    feed(kafka.bootstrap, source, orders(COUNT))
    running = service(pipeline(source, totals, windows, spread), kafka.bootstrap, BATCH__ROWS="1500")
    running.start()
    assert running.wait() == 0, running.log[-4000:]
    assert answers(kafka.bootstrap, totals, windows, spread) == expected(COUNT)
