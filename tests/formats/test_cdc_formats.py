"""canal-json, maxwell-json and ogg-json: what each says of a change, read and written."""

from __future__ import annotations

import pytest

from service.plan.types import BIGINT, STRING
from tests.formats.wire import dead, encode, rows, table, values

COLUMNS = {"k": BIGINT, "v": STRING}
CANAL, MAXWELL, OGG = (table(COLUMNS, f"{name}-json") for name in ("canal", "maxwell", "ogg"))


@pytest.mark.parametrize(
    ("source", "record", "changes"),
    [
        (CANAL, '{"data":[{"k":"1","v":"a"}],"old":null,"type":"INSERT"}', [(1, "a")]),
        (CANAL, '{"data":[{"k":1,"v":"a"},{"k":2,"v":"b"}],"type":"INSERT"}', [(1, "a"), (2, "b")]),
        (CANAL, '{"data":[{"k":1,"v":"b"}],"old":[{"v":"a"}],"type":"UPDATE"}', [(-1, (1, "a")), (1, "b")]),
        (CANAL, '{"data":[{"k":1,"v":"b"}],"old":[{"v":null}],"type":"UPDATE"}', [(-1, (1, None)), (1, "b")]),
        (CANAL, '{"data":[{"k":1,"v":null}],"old":[{"v":"a"}],"type":"UPDATE"}', [(-1, (1, "a")), (1, None)]),
        (
            CANAL,
            '{"data":[{"k":1,"v":"b"},{"k":2,"v":"d"}],"old":[{"v":"a"},{"v":null}],"type":"UPDATE"}',
            [(-1, (1, "a")), (1, "b"), (-1, (2, None)), (2, "d")],
        ),
        (CANAL, '{"data":[{"k":1,"v":"b"}],"type":"DELETE"}', [(-1, (1, "b"))]),
        (CANAL, '{"data":null,"type":"CREATE","sql":"CREATE TABLE t"}', []),
        (MAXWELL, '{"data":{"k":1,"v":"a"},"type":"insert"}', [(1, "a")]),
        (MAXWELL, '{"data":{"k":1,"v":"b"},"old":{"v":"a"},"type":"update"}', [(-1, (1, "a")), (1, "b")]),
        (MAXWELL, '{"data":{"k":1,"v":"b"},"old":{"v":null},"type":"update"}', [(-1, (1, None)), (1, "b")]),
        (MAXWELL, '{"data":{"k":1,"v":"b"},"type":"delete"}', [(-1, (1, "b"))]),
        (MAXWELL, '{"data":{},"type":"bootstrap-start"}', []),
        (OGG, '{"after":{"k":1,"v":"a"},"op_type":"I"}', [(1, "a")]),
        (
            OGG,
            '{"before":{"k":1,"v":"a"},"after":{"k":1,"v":"b"},"op_type":"U"}',
            [(-1, (1, "a")), (1, "b")],
        ),
        (OGG, '{"before":{"k":1,"v":"b"},"after":null,"op_type":"D"}', [(-1, (1, "b"))]),
        (OGG, '{"op_type":"T"}', []),
    ],
)
def test_a_record_is_the_changes_that_it_describes(source, record: str, changes: list[object]):
    assert rows(source, record) == changes
    assert dead(source, record) == []


@pytest.mark.parametrize(
    ("source", "record", "detail"),
    [
        (CANAL, '{"data":[{"k":1}],"type":"MERGE"}', "known: INSERT, UPDATE or DELETE"),
        (CANAL, '{"data":null,"type":"INSERT"}', 'no "data"'),
        (MAXWELL, '{"data":{"k":1},"type":"merge"}', "known: insert, update or delete"),
        (MAXWELL, '{"data":null,"type":"insert"}', 'no "data"'),
        (OGG, '{"after":{"k":1},"op_type":"X"}', "known: I, U, D or T"),
        (OGG, '{"before":null,"after":{"k":1},"op_type":"U"}', 'no "before"'),
    ],
)
def test_a_record_that_says_nothing_that_makes_sense_is_a_dead_letter(source, record: str, detail: str):
    ((offset, reason, told),) = dead(source, record)
    assert (offset, reason) == (0, "bad-value")
    assert detail in told


def test_canal_reads_the_databases_and_tables_that_it_is_told_to():
    source = table(COLUMNS, "canal-json", {"database.include": "shop.*", "table.include": "orders"})
    record = '{{"data":[{{"k":1,"v":"a"}}],"type":"INSERT","database":"{}","table":"{}"}}'
    given = [record.format(*names) for names in (("shop1", "orders"), ("shop1", "users"), ("other", "orders"))]
    assert rows(source, *given) == [(1, "a")]
    assert dead(source, *given) == []


@pytest.mark.parametrize(
    ("sink", "written"),
    [
        (
            CANAL,
            [
                '{"data":[{"k":1,"v":"a"}],"type":"INSERT"}',
                '{"data":[{"k":1,"v":"a"}],"type":"DELETE"}',
                '{"data":[{"k":1,"v":"b"}],"type":"INSERT"}',
            ],
        ),
        (
            MAXWELL,
            [
                '{"data":{"k":1,"v":"a"},"type":"insert"}',
                '{"data":{"k":1,"v":"a"},"type":"delete"}',
                '{"data":{"k":1,"v":"b"},"type":"insert"}',
            ],
        ),
        (
            OGG,
            [
                '{"before":null,"after":{"k":1,"v":"a"},"op_type":"I"}',
                '{"before":{"k":1,"v":"a"},"after":null,"op_type":"D"}',
                '{"before":null,"after":{"k":1,"v":"b"},"op_type":"I"}',
            ],
        ),
    ],
)
def test_an_update_is_written_as_flink_writes_it(sink, written: list[str]):
    first = values(encode(sink, (1, (1, "a"))))
    second = values(encode(sink, (-1, (1, "a")), (1, (1, "b"))))
    assert first + second == written
    assert rows(sink, *written) == [(1, "a"), (-1, (1, "a")), (1, "b")]
