from __future__ import annotations

from typing import Any

import pytest

from service.plan.stage.bucket import FORMAT, StateMismatch
from service.spark.checkpoint import Checkpoint, Fixed

WANTED = Fixed(fingerprint="query", partitions=4, buckets_per_partition=2)
SAVED = {"format": FORMAT, **WANTED._asdict()}


class Kept(Checkpoint):
    """A checkpoint whose small files are in memory."""

    def __init__(self, fixed: dict[str, Any] | None) -> None:
        self.url = "/checkpoint"
        self.files = {} if fixed is None else {"fixed": fixed}

    def read(self, name: str) -> Any:
        return self.files.get(name)

    def write(self, name: str, value: Any) -> None:
        self.files[name] = value


def test_a_new_checkpoint_is_made_for_what_is_wanted() -> None:
    kept = Kept(None)
    assert kept.agree(WANTED, partitions_chosen=False) == WANTED
    assert kept.files == {"fixed": SAVED}


def test_partitions_that_nobody_has_chosen_are_taken_as_they_are() -> None:
    assert Kept({**SAVED, "partitions": 8}).agree(WANTED, partitions_chosen=False).partitions == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": FORMAT - 1}, f"another version of the service.*has format {FORMAT - 1}, .* reads format {FORMAT}"),
        ({"fingerprint": "other"}, "the state of another query.*made by query other, this query is query"),
        ({"partitions": 8}, "TAILRACE_SPARK__PARTITIONS=8, not 4"),
        ({"buckets_per_partition": 1}, "TAILRACE_SPARK__BUCKETS_PER_PARTITION=1, not 2"),
    ],
)
def test_a_checkpoint_that_was_made_for_something_else_is_refused_and_says_what_differs(
    change: dict[str, Any], said: str
) -> None:
    kept = Kept({**SAVED, **change})
    with pytest.raises(StateMismatch, match=f"(?s){said}"):
        kept.agree(WANTED, partitions_chosen=True)
