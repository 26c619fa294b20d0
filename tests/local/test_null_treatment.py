"""ARRAY_AGG with and without NULL."""

from __future__ import annotations

import pytest

from tests.local.test_conditions import answer, rows

GIVEN = [(1, 1), (1, None), (1, 1), (2, None), (3, 5)]
RECORDS = [
    f'{{"k": {k}, "v": {"null" if v is None else v}, "ts": "2023-11-14 22:00:0{i}"}}' for i, (k, v) in enumerate(GIVEN)
]


@pytest.mark.parametrize(
    ("call", "counts"),
    [
        ("ARRAY_AGG(v)", [3, 1, 1]),
        ("ARRAY_AGG(v RESPECT NULLS)", [3, 1, 1]),
        ("ARRAY_AGG(v) RESPECT NULLS", [3, 1, 1]),
        ("ARRAY_AGG(v IGNORE NULLS)", [2, -1, 1]),
        ("ARRAY_AGG(v) IGNORE NULLS", [2, -1, 1]),
        ("ARRAY_AGG(DISTINCT v RESPECT NULLS)", [2, 1, 1]),
        ("ARRAY_AGG(DISTINCT v IGNORE NULLS)", [1, -1, 1]),
        ("ARRAY_AGG(v IGNORE NULLS) FILTER (WHERE v > 1)", [-1, -1, 1]),
    ],
)
def test_array_agg_keeps_or_ignores_nulls(call: str, counts: list[int]):
    found = answer(f"SELECT k, 0, COALESCE(CARDINALITY({call}), -1) FROM a GROUP BY k", RECORDS, [])
    assert rows(found) == [(k, 0, n) for k, n in zip((1, 2, 3), counts, strict=True)]


def test_array_agg_over_rows_ignores_nulls():
    call = "ARRAY_AGG(v IGNORE NULLS) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)"
    found = answer(f"SELECT k, 0, COALESCE(CARDINALITY({call}), -1) FROM a", RECORDS, [])
    assert rows(found) == [(1, 0, 1), (1, 0, 1), (1, 0, 2), (2, 0, -1), (3, 0, 1)]
