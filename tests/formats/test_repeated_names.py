"""Which records may repeat a wanted name: none that does is missed, wherever its key stands."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.json.repeats import Repeats
from service.plan import types

NONE: Mapping[str, int] = {}


@pytest.mark.parametrize(
    ("name", "records", "present", "expected"),
    [
        ("a", ['{"a":1,"a":2}', '{"a":3}'], {"a": 2}, [True, False]),
        ("a", ['{"a":1}', '{"b":{"a":2},"a":3}'], {"a": 2}, [False, True]),
        ("a", ['{"a" :1,"a"\n:2}', '{"a":1}'], {"a": 2}, [True, False]),
        ("a", ['{"a":1}', '{"b":2}'], {"a": 1}, [False, False]),
        # An escaped key of another record does not make up for one that repeats.
        ("a", ['{"a":1,"a":2}', '{"\\u0061":3}'], {"a": 2}, [True, False]),
        ("a", ['{"b":1}', '{"ba":1,"ca":2}'], NONE, [False, False]),
        ("a_name_of_many_letters", ['{"a_name_of_many_letters":1,"a_name_of_many_letters":2}'], NONE, [True]),
        ("one_address", ['{"two_address":1,"three_address":2}', '{"x":1}'], NONE, [False, False]),
        ("größe", ['{"größe":1,"größe":2}', '{"gr\\u00f6\\u00dfe":1,"größe":2}'], {"größe": 2}, [True, True]),
    ],
)
def test_records_with_a_repeated_key_are_found(
    name: str, records: list[str], present: Mapping[str, int], expected: list[bool]
):
    repeats = Repeats((name,), (types.BIGINT,), 1)
    assert repeats.found(pa.array(records), present, Sql()).tolist() == expected


def test_a_part_of_a_block_is_searched_and_not_its_neighbours():
    block = pa.array(['{"a":1,"a":2}', '{"a":3}', '{"a":4,"a":5}']).slice(1, 1)
    assert Repeats(("a",), (types.BIGINT,), 1).found(block, {"a": 1}, Sql()).tolist() == [False]
