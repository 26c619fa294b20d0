"""Changes add up to the rows of a table."""

from __future__ import annotations

import pytest

from service.local.changelog import Change, NotThere, applied

ANN, BOB = ("ann", "1"), ("bob", "2")


def test_changes_add_up_to_rows():
    assert applied([[Change("+I", ANN), Change("+I", BOB)], [Change("-U", ANN), Change("+U", ("ann", "3"))]], (0,)) == [
        ("ann", "3"),
        BOB,
    ]


def test_without_a_key_equal_rows_count_one_by_one():
    assert applied([[Change("+I", ANN), Change("+I", ANN)], [Change("-D", ANN)]], None) == [ANN]


def test_with_a_key_a_new_row_replaces_the_one_before():
    assert applied([[Change("+I", ANN)], [Change("+I", ("ann", "9"))]], (0,)) == [("ann", "9")]


def test_a_row_that_is_not_there_cannot_be_retracted():
    with pytest.raises(NotThere, match="batch 2: -D retracts a row that does not exist: bob, 2"):
        applied([[Change("+I", ANN)], [Change("-D", BOB)]], None)
