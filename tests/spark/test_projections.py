"""When Spark's projections are interpreted."""

from __future__ import annotations

import pytest

from service.spark.query.projections import worth_interpreting


@pytest.mark.parametrize(
    ("records", "partitions", "interpreted"),
    [
        (2_000, 64, True),
        (2_000, 1, True),
        (500_000, 2, False),
        (500_000, 256, True),
        (5_000, 1, False),
        (4_999, 1, True),
    ],
)
def test_projections_are_compiled_where_a_partition_gives_many_records(
    records: int, partitions: int, interpreted: bool
):
    assert worth_interpreting(records, partitions) is interpreted
