"""Where bounded sources end is decided once for a checkpoint."""

from __future__ import annotations

import pytest

from service.deployment.bounds import agree_on_bounds, reached
from service.kafka.errors import KafkaConfigError
from service.plan.program import Program, Source
from service.plan.table import Bounded, Connector, Table
from tests.kept_files import KeptFiles

FREE = Bounded()
LATEST = Bounded(mode="latest-offset")
TO_100 = Bounded(mode="specific-offsets", offsets=((0, 100),))
TO_200 = Bounded(mode="specific-offsets", offsets=((0, 200),))


def start(kept: KeptFiles, bounded: Bounded, end: int = 100) -> dict[str, int]:
    """Start the job of one table on a checkpoint, while its topic ends at `end`."""
    table = Table("t", (), Connector("kafka", topics=("a",), bounded=bounded))
    program = Program("q", (Source(0, table, (), None),), (), (), 0, "f")
    return agree_on_bounds(kept, program, frozenset() if bounded == FREE else frozenset({0}), lambda _: {"a": {0: end}})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (LATEST, FREE, "made with latest-offset, the table now has no bound"),
        (FREE, LATEST, "made with no bound, the table now has latest-offset"),
        (TO_100, TO_200, "made with specific-offsets 0:100, the table now has specific-offsets 0:200"),
    ],
)
def test_another_bound_than_the_checkpoint_was_made_with_is_refused(before: Bounded, after: Bounded, message: str):
    kept = KeptFiles()
    start(kept, before)
    with pytest.raises(KafkaConfigError, match=message):
        start(kept, after)


@pytest.mark.parametrize(("before", "after"), [(LATEST, FREE), (FREE, LATEST)])
def test_a_checkpoint_that_knows_only_the_ends_refuses_as_well(before: Bounded, after: Bounded):
    kept = KeptFiles()
    start(kept, before)
    del kept.files["bounds"]
    with pytest.raises(KafkaConfigError):
        start(kept, after)


def test_the_ends_are_those_of_the_first_start():
    kept = KeptFiles()
    assert start(kept, LATEST, end=100) == start(kept, LATEST, end=500) == {"s0000/a/00000": 100}


@pytest.mark.parametrize(
    ("limits", "read", "ended"),
    [
        ({"s0000/a/00000": 100}, 99, False),
        ({"s0000/a/00000": 100}, 100, True),
        ({"s0000/a/00000": 0}, 0, True),
        ({}, 3, False),
        ({"s0001/a/00000": 1}, 3, False),
    ],
)
def test_a_source_has_ended_when_all_of_its_ends_are_reached(limits: dict[str, int], read: int, ended: bool):
    assert reached(0, limits, {"a": {"0": read}}) is ended
