"""Records that DuckDB takes for JSON objects and that are none are read exactly, wherever they stand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.json.malformed import _compact, malformed
from service.formats.json.options import JsonOptions
from service.formats.json.parse import Fields, ParseMode, Statement
from service.plan import types

RECORDS = [
    ('{"a":2}', False),
    ("{}", False),
    # White space around an object is no part of it.
    ('{"a":2} ', False),
    ('{"a":2}\r\n', False),
    ('\t{"a":2}', False),
    ('{ "a" : [1, 2 ] , "b" : { } }', False),
    ("[]", True),
    (" ", True),
    ('{"a":2,}', True),
    ('{"a":2, }', True),
    ('{"a":2,\n}\n', True),
    ('{"a":{"b":1,}}', True),
    ('{"a":{"b":1, },"c":2}', True),
    ('{"a":[1,]}', True),
    ('{"a":[1, ]}', True),
    ('{"a":[1,2],"b":"]}"}', False),
    # In a text it is right: the exact way finds that out.
    ('{"a":"1,}"}', True),
]


@pytest.mark.parametrize(("record", "suspect"), RECORDS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_record_that_may_be_no_object_is_found_wherever_it_stands(record: str, suspect: bool, place: int):
    records = ['{"a":1}'] * 3
    records[place] = record
    assert malformed(pa.array(records)).tolist() == [suspect and i == place for i in range(3)]
    alone = pa.array(["{,}", *records, "{,}"]).slice(1, 3)
    assert malformed(alone).tolist() == [suspect and i == place for i in range(3)]


@pytest.mark.parametrize("length", range(1, 12))
@pytest.mark.parametrize(("record", "suspect"), RECORDS)
def test_it_is_found_wherever_the_pieces_end_that_are_searched(
    record: str, suspect: bool, length: int, monkeypatch: pytest.MonkeyPatch
):
    for name in ("_PIECE", "_LONG_PIECE"):
        monkeypatch.setattr(f"service.formats.json.malformed.{name}", length)
    block = pa.array(["{,}", '{"a":1}', record, '{"a":"b"}', '{"a":{"b":[3]}}', "{,}"]).slice(1, 4)
    assert malformed(block).tolist() == [False, suspect, False, False]


COMPACT = [
    (['{"a":1}', '{"a":{"b":[true,null,"c, d",[]]}}', "{}"], True),
    (['{"a":1}', '{"a":1} ', '{"a":1}'], False),
    (['{"a":1}', ' {"a":1}', '{"a":1}'], False),
    (['{"a":1}', '{"a":[1,]}', '{"a":1}'], False),
    (['{"a":1}', '{"a":1\n}', '{"a":1}'], False),
    (['{"a":1}', "[1]", '{"a":1}'], False),
    (['{"a":1}', "}", '{"a":1}'], False),
]


@pytest.mark.parametrize(("records", "compact"), COMPACT)
def test_one_pass_tells_of_a_block_that_no_record_has_to_be_looked_at(records: list[str], compact: bool):
    assert _compact(pa.array(records)) is compact
    assert _compact(pa.array(["{,}", *records, "{,}"]).slice(1, 3)) is compact


@pytest.mark.parametrize(("record", "suspect"), RECORDS)
def test_every_way_of_reading_a_block_finds_it(record: str, suspect: bool):
    for mode in ParseMode:
        way = Statement(Fields(("x",), (types.BIGINT,)), JsonOptions(), mode)
        read = way.read(pa.array(['{"x":1}', record, '{"x":2}']), Sql())
        assert read is None or read.suspect.tolist() == [False, suspect, False]
