"""canal-json, maxwell-json and ogg-json: what each says of a change, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pytest

from service.formats.changes import beside_rows
from service.plan.types import BIGINT, INT, STRING, Array, DataType, Map, Timestamp, TimestampLtz
from service.sql.tables.metadata_columns import METADATA_OF_FORMATS
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
    ((offset, reason, why),) = dead(source, record)
    assert (offset, reason) == (0, "bad-value")
    assert detail in why


def test_canal_reads_the_databases_and_tables_that_its_options_name():
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


INSTANT, TEXTS = TimestampLtz(3), Array(STRING)
AT = datetime(2020, 5, 13, 15, 40, 6)
MILLIS = 1_589_384_406_000
AS_CANAL: dict[str, tuple[DataType, str, object]] = {
    "value.database": (STRING, '"database":"shop"', "shop"),
    "value.table": (STRING, '"table":"orders"', "orders"),
    "value.sql-type": (Map(STRING, INT), '"sqlType":{"k":-5,"v":12}', [("k", -5), ("v", 12)]),
    "value.pk-names": (TEXTS, '"pkNames":["k"]', ["k"]),
    "value.ingestion-timestamp": (INSTANT, f'"ts":{MILLIS + 1}', AT.replace(microsecond=1000)),
    "value.event-timestamp": (INSTANT, f'"es":{MILLIS}', AT),
}
AS_MAXWELL: dict[str, tuple[DataType, str, object]] = {
    "value.database": (STRING, '"database":"shop"', "shop"),
    "value.table": (STRING, '"table":"orders"', "orders"),
    "value.primary-key-columns": (TEXTS, '"primary_key_columns":["k","v"]', ["k", "v"]),
    "value.ingestion-timestamp": (INSTANT, f'"ts":{MILLIS // 1000}', AT),
}
FINE = AT.replace(microsecond=123456)
AS_OGG: dict[str, tuple[DataType, str, object]] = {
    "value.table": (STRING, '"table":"SHOP.ORDERS"', "SHOP.ORDERS"),
    "value.primary-keys": (TEXTS, '"primary_keys":["k"]', ["k"]),
    "value.ingestion-timestamp": (TimestampLtz(6), '"current_ts":"2020-05-13T15:40:06.123456Z"', FINE),
    "value.event-timestamp": (TimestampLtz(6), '"op_ts":"2020-05-13 15:40:06.123456"', FINE),
}
INSERTS = {
    "canal": '{{"data":[{{"k":1}},{{"k":2}}],"type":"INSERT"{beside}}}',
    "maxwell": '{{"data":{{"k":1}},"type":"insert"{beside}}}',
    "ogg": '{{"after":{{"k":1}},"op_type":"I"{beside}}}',
}


@pytest.mark.parametrize(("form", "known"), [("canal", AS_CANAL), ("maxwell", AS_MAXWELL), ("ogg", AS_OGG)])
def test_what_a_record_says_beside_its_rows_is_metadata(form: str, known: dict[str, tuple[DataType, str, object]]):
    columns = {f"m{i}": kind for i, (kind, _, _) in enumerate(known.values())}
    keys = {f"m{i}": key for i, key in enumerate(known)}
    source = table({**columns, "k": BIGINT}, f"{form}-json", metadata=keys)
    beside = tuple(value for _, _, value in known.values())
    ids = (1, 2) if form == "canal" else (1,)
    record = INSERTS[form].format(beside="".join(f",{text}" for _, text, _ in known.values()))
    assert rows(source, record) == [(*beside, k) for k in ids]
    nothing = INSERTS[form].format(beside="")
    assert rows(source, nothing) == [(*[None] * len(known), k) for k in ids]


@pytest.mark.parametrize(
    ("form", "read"), [("canal", beside_rows.CANAL), ("maxwell", beside_rows.MAXWELL), ("ogg", beside_rows.OGG)]
)
def test_every_metadata_key_that_a_table_may_declare_is_read_and_no_other(
    form: str, read: Mapping[str, beside_rows.FieldBeside]
):
    assert read.keys() == METADATA_OF_FORMATS[f"{form}-json"].keys()


@pytest.mark.parametrize(("form", "known"), [("canal", AS_CANAL), ("maxwell", AS_MAXWELL), ("ogg", AS_OGG)])
def test_one_alone_is_read_without_the_others(form: str, known: dict[str, tuple[DataType, str, object]]):
    for key, (kind, text, value) in known.items():
        source = table({"m": kind, "k": BIGINT}, f"{form}-json", metadata={"m": key})
        assert rows(source, INSERTS[form].format(beside=f",{text}"))[0] == (value, 1)


@pytest.mark.parametrize(
    ("form", "key", "beside", "value"),
    [
        ("canal", "value.event-timestamp", '"es":9223372036854775807', None),
        ("maxwell", "value.ingestion-timestamp", '"ts":9223372036854775807', None),
        ("maxwell", "value.ingestion-timestamp", '"ts":-1', datetime(1969, 12, 31, 23, 59, 59)),
        ("ogg", "value.event-timestamp", '"op_ts":"soon"', None),
        ("ogg", "value.event-timestamp", '"op_ts":"2021-02-29 00:00:00"', None),
        ("ogg", "value.event-timestamp", '"op_ts":"2020-02-29 00:00:00.1239"', datetime(2020, 2, 29, 0, 0, 0, 123000)),
        (
            "ogg",
            "value.event-timestamp",
            '"op_ts":"1969-12-31 23:59:59.9999"',
            datetime(1969, 12, 31, 23, 59, 59, 999000),
        ),
    ],
)
def test_a_time_that_is_none_or_too_far_away_is_null(form: str, key: str, beside: str, value: datetime | None):
    source = table({"m": Timestamp(3), "k": BIGINT}, f"{form}-json", metadata={"m": key})
    assert rows(source, INSERTS[form].format(beside=f",{beside}"))[0] == (value, 1)
    assert dead(source, INSERTS[form].format(beside=f",{beside}")) == []
