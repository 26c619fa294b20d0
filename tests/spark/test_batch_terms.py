"""A batch that has begun keeps the number of its tasks; what is wanted instead holds once it is done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from operators.slots import SLOTS
from service.spark.supervision.batch_terms import BatchTerms


class _Checkpoint:
    """The numbers of tasks as `Checkpoint` keeps them, without a file."""

    def __init__(self, shards: int, readers: int, *, begun: bool) -> None:
        self._shards, self._readers = shards, readers
        self._begun = begun

    def begun(self) -> int | None:
        return 7 if self._begun else None

    def shards(self, wanted: int) -> int:
        return self._shards if self._begun else wanted

    def readers(self, wanted: int) -> int:
        return self._readers if self._begun else wanted

    def read(self, name: str) -> Any:
        return None


def agreed(*, wanted: int, levels: int, begun: bool) -> BatchTerms:
    """Terms of a job that writes to no topic, with a checkpoint of 4 shards and 3 readers."""
    checkpoint: Any = _Checkpoint(4, 3, begun=begun)
    deployment: Any = SimpleNamespace(
        program=SimpleNamespace(levels=[None] * levels, outputs=[]),
        writers=SimpleNamespace(side=None, of_output={}),
        settings=SimpleNamespace(topics=None),
    )
    terms = BatchTerms(checkpoint, wanted)
    terms.agree(deployment)
    return terms


@pytest.mark.parametrize(
    ("wanted", "levels", "begun", "shards", "readers", "outdated"),
    [
        (8, 1, True, 4, 8, True),
        (4, 1, True, 4, 4, False),
        (8, 0, True, 4, 3, True),
        (8, 1, False, 8, 8, False),
        (8, 0, False, 8, 8, False),
        (SLOTS + 1, 1, False, SLOTS, SLOTS + 1, False),
    ],
)
def test_a_begun_batch_keeps_the_number_of_its_tasks(
    wanted: int, levels: int, begun: bool, shards: int, readers: int, outdated: bool
) -> None:
    terms = agreed(wanted=wanted, levels=levels, begun=begun)
    assert (terms.layout.shards, terms.readers, terms.outdated) == (shards, readers, outdated)
