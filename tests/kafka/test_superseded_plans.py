"""A batch that is given up: no writer of the plan before commits it any more, however late it wakes up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.kafka.errors import Fenced
from service.kafka.writer.client import TransactionClient
from service.kafka.writer.marker import Marker, MarkerReader
from service.kafka.writer.partition_writer import PartitionWriter
from service.kafka.writer.written import written
from tests.kafka.conftest import Query


def superseded(query: Query, batch: int, plan: int = 1) -> bool:
    settings = replace(query.settings(), plan=plan)
    writer = PartitionWriter(settings, 0, MarkerReader(settings.kafka))
    try:
        return writer.supersede(batch)
    finally:
        writer.close()


def test_what_was_committed_stays_and_a_batch_that_is_committed_cannot_be_given_up(query: Query):
    query.write(0, "a", digest=b"first")
    assert superseded(query, 1)
    assert written(query.settings()).markers == {0: Marker(0, b"first", 1)}
    assert not superseded(query, 0)
    assert query.committed() == ["a"]


@pytest.mark.parametrize("begun", [True, False])
def test_a_task_of_the_plan_before_writes_nothing(query: Query, begun: bool):
    query.write(0, "a")
    with query.attempt(1) as zombie:
        if begun:
            zombie.begin()
            zombie.send(query.rows("zombie"))
        assert superseded(query, 1)
        with pytest.raises(Fenced):
            _write(zombie, query, begun)
    with pytest.raises(Fenced, match="was given up"):
        query.write(1, "again", host="b")
    query.set(plan=1)
    assert query.write(1, "anew", digest=b"another cut").outcome == "committed"
    assert query.committed() == ["a", "anew"]


def test_a_batch_that_was_the_first_can_be_given_up(query: Query):
    assert superseded(query, 0)
    query.set(plan=1)
    query.write(0, "a")
    assert superseded(query, 1, plan=2)
    assert query.committed() == ["a"]


def _write(zombie: TransactionClient, query: Query, begun: bool) -> None:
    """The rest of an attempt."""
    if not begun:
        zombie.begin()
        zombie.send(query.rows("zombie"))
    zombie.commit()
