"""What a worker remembers: bounded in rows and in time."""

from __future__ import annotations

from typing import Any

from service.databases.cache import RowCache
from service.databases.rows import FoundRow
from service.plan.table import LookupOptions

ONE = [FoundRow((1,))]
THREE = ONE * 3


def cache(**options: Any) -> RowCache:
    return RowCache(LookupOptions("t", cached=True, **options))


def test_rows_are_remembered_and_that_a_key_has_none():
    kept = cache()
    kept.put((1,), ONE, 0)
    kept.put((2,), [], 0)
    assert (kept.get((1,), 10**9), kept.get((2,), 10**9), kept.get((3,), 0)) == (ONE, [], None)


def test_that_a_key_has_no_rows_is_not_remembered_where_it_shall_not_be():
    kept = cache(cache_missing=False)
    kept.put((2,), [], 0)
    assert kept.get((2,), 0) is None


def test_the_key_that_was_used_the_longest_time_ago_goes_first():
    kept = cache(max_rows=4)
    kept.put((1,), ONE, 0)
    kept.put((2,), THREE, 0)
    kept.get((1,), 0)
    kept.put((3,), [], 0)
    assert (kept.get((1,), 0), kept.get((2,), 0), kept.get((3,), 0)) == (ONE, None, [])
    assert kept.rows == 2


def test_rows_that_are_too_many_are_not_remembered_and_drive_nothing_out():
    kept = cache(max_rows=2)
    kept.put((1,), ONE, 0)
    kept.put((2,), THREE, 0)
    assert (kept.get((1,), 0), kept.get((2,), 0)) == (ONE, None)


def test_rows_are_forgotten_a_while_after_they_were_read():
    kept = cache(expire_after_write=10)
    kept.put((1,), ONE, 5)
    assert (kept.get((1,), 14), kept.get((1,), 15), kept.rows) == (ONE, None, 0)


def test_rows_are_forgotten_a_while_after_their_last_use():
    kept = cache(expire_after_access=10)
    kept.put((1,), ONE, 5)
    assert [kept.get((1,), now) for now in (14, 23, 33)] == [ONE, ONE, None]


def test_a_key_that_is_read_again_has_its_new_rows_alone():
    kept = cache()
    kept.put((1,), THREE, 0)
    kept.put((1,), ONE, 0)
    assert (kept.get((1,), 0), kept.rows) == (ONE, 1)
