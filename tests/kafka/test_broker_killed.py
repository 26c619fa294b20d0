"""The broker dies (kill -9) and comes back: every batch still appears exactly once."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from service.kafka.errors import KafkaUnreachable, TransactionLost
from tests.kafka.conftest import Query


@pytest.fixture
def broker(own_kafka):
    return own_kafka(heap="256m")


def test_a_broker_that_dies_during_commits_loses_and_doubles_nothing(broker, make_query):
    query: Query = make_query(broker.bootstrap, patience_ms=90_000, transaction_timeout_ms=20_000)
    rng = random.Random(3)
    expected = []
    for batch in range(2):
        values = [f"{batch}-{row}" for row in range(100)]
        expected += values
        with ThreadPoolExecutor(1) as pool, query.attempt(batch) as attempt:
            attempt.begin()
            attempt.send(query.rows(*values))
            outage = pool.submit(_outage, broker, rng.uniform(0, 0.03))
            with suppress(KafkaUnreachable, TransactionLost):
                attempt.commit()
            outage.result()
        query.insist(batch, *values)
    query.wait_until_decided()
    assert sorted(query.committed()) == sorted(expected)


def test_while_the_broker_is_away_an_attempt_waits_and_then_says_so(broker, make_query):
    query: Query = make_query(broker.bootstrap, patience_ms=10_000)
    query.write(0, "a")
    broker.kill()
    started = time.monotonic()
    with pytest.raises(KafkaUnreachable):
        query.write(0, "b", checkpoint="c2")
    assert time.monotonic() - started < 60
    broker.start()
    query.insist(1, "c")
    assert query.committed() == ["a", "c"]


def _outage(broker, after: float) -> None:
    time.sleep(after)
    broker.kill()
    time.sleep(0.5)
    broker.start()
