"""Records that DuckDB takes for JSON objects and that are none are read exactly, wherever they stand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.json.malformed import malformed
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


@pytest.mark.parametrize(("record", "suspect"), RECORDS)
def test_every_way_of_reading_a_block_finds_it(record: str, suspect: bool):
    for mode in ParseMode:
        way = Statement(Fields(("x",), (types.BIGINT,)), JsonOptions(), mode)
        read = way.read(pa.array(['{"x":1}', record, '{"x":2}']), Sql())
        assert read is None or read.suspect.tolist() == [False, suspect, False]
