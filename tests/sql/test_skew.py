"""SKEW: a hot key of a join is spread over places, and the other side is repeated for each of them."""

from __future__ import annotations

import pytest

from tests.sql.outline import mistakes, outline, plan


def test_rows_of_the_hot_side_get_a_place_and_the_other_rows_are_there_for_each():
    query = "SELECT /*+ SKEW('a', 'a1', 7) */ a2, b3 FROM a LEFT JOIN b ON a1 = b1 AND a2 > b2"
    assert outline(plan(query)) == (
        "project a2, b3\n"
        "  left join a1 = b1 and spread((a1 IN (7)), a1, a2, a3) = spread where (a2 > b2)\n"
        "    project a1, a2, a3, spread((a1 IN (7)), a1, a2, a3)\n"
        "      scan a\n"
        "    unnest copies((b1 IN (7))) with ordinality\n"
        "      project b1, b2, b3, copies((b1 IN (7)))\n"
        "        scan b"
    )


def test_a_key_that_is_compared_as_another_type_is_spread():
    query = "SELECT /*+ SKEW('n', 'k', 7) */ b3 FROM (SELECT CAST(a1 AS INT) AS k, a2 FROM a) AS n JOIN b ON k = b1"
    assert "spread((k IN (7)), k, a2) = spread" in outline(plan(query))


def test_a_row_is_placed_by_its_unique_key():
    query = "SELECT /*+ SKEW('item', 'name', 'x') */ b1 FROM b JOIN item ON b3 = name"
    assert "spread((name IN ('x')), id)" in outline(plan(query))


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            "SELECT /*+ SKEW('b', 'b1') */ a1 FROM a LEFT JOIN b ON a1 = b1",
            'SKEW cannot spread "b" in a LEFT JOIN\n'
            "  detail: rows of the other side are repeated, and would be padded as often\n"
            '  hint:   write an INNER JOIN, or one that keeps the rows of "b"',
        ),
        (
            "SELECT /*+ SKEW('q', 'b1') */ a1 FROM a JOIN b ON a1 = b1",
            'SKEW names "q", which the query does not join\n  detail: it reads a, b',
        ),
        (
            "SELECT /*+ SKEW('a', 'a2') */ a1 FROM a JOIN b ON a1 = b1",
            'no join compares "a2" of "a" that SKEW could spread\n'
            "  detail: it spreads a column that a join compares by equality, lookup joins left out\n"
            "  hint:   name the column as it is written in ON or USING",
        ),
        ("SELECT /*+ SKEW('a') */ a1 FROM a JOIN b ON a1 = b1", "SKEW takes 'side', 'key' and values of the key"),
    ],
)
def test_a_wrong_hint_is_refused_with_a_reason(query: str, mistake: str):
    assert mistakes(query) == [mistake]
