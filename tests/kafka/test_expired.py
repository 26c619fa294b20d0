"""A transaction that is open for longer than its time-out: the broker ends it, and the task gets the reason."""

from __future__ import annotations

import time

import pytest

from service.kafka.errors import TransactionExpired
from tests.kafka.conftest import Query

TIME_OUT_MS = 5_000
"""More than it takes to write a batch where the machine is busy."""


@pytest.fixture
def broker(own_kafka):
    """A broker that looks often for transactions that are too old."""
    return own_kafka(properties={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"})


@pytest.mark.parametrize("more", [True, False], ids=["at the next records", "at the commit"])
def test_a_transaction_that_was_open_for_too_long_says_so_and_the_next_attempt_writes(broker, make_query, more: bool):
    query: Query = make_query(broker.bootstrap, patience_ms=20_000, transaction_timeout_ms=TIME_OUT_MS)

    def slowly() -> None:
        with query.attempt(0) as attempt:
            attempt.begin()
            attempt.send(query.rows("a"))
            time.sleep(2 * TIME_OUT_MS / 1000)
            if more:
                attempt.send(query.rows("b"))
            attempt.commit()

    with pytest.raises(TransactionExpired, match="TAILRACE_KAFKA__TRANSACTION_TIMEOUT"):
        slowly()
    assert query.committed() == []
    assert query.write(0, "again").outcome == "committed"
    assert query.committed() == ["again"]
