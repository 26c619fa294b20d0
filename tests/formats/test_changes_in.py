"""Records of debezium-json and changelog-json become changes, or dead letters that say why."""

from __future__ import annotations

from datetime import datetime

import pytest

from service.plan import types as t
from service.plan.table import Format, Table
from service.sql.tables.metadata_columns import METADATA_OF_FORMATS
from tests.formats.wire import dead, decode, records, rows, shown, table

COLUMNS = {"k": t.INT, "v": t.STRING}
DEBEZIUM = table(COLUMNS, "debezium-json", key=["k"])
CHANGELOG = table(COLUMNS, "changelog-json")
UPSERT = table(COLUMNS, kind="upsert-kafka", key=["k"], key_format=Format("json"))


def test_a_debezium_insert_read_update_and_delete():
    found = rows(
        DEBEZIUM,
        '{"before":null,"after":{"k":1,"v":"a"},"op":"c"}',
        '{"before":null,"after":{"k":2,"v":"b"},"source":{"k":9},"op":"r"}',
        '{"before":{"k":1,"v":"a"},"after":{"k":1,"v":"c"},"op":"u","ts_ms":1}',
        '{"before":{"k":2,"v":"b"},"after":null,"op":"d"}',
        None,
    )
    assert found == [(1, "a"), (2, "b"), (-1, (1, "a")), (1, "c"), (-1, (2, "b"))]


def test_a_debezium_record_may_be_wrapped_with_its_schema():
    source = table(COLUMNS, "debezium-json", {"schema-include": "true"})
    text = '{"schema":{"fields":[{"field":"k"}]},"payload":{"before":null,"after":{"k":1,"v":"a"},"op":"c"}}'
    assert rows(source, text) == [(1, "a")]


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ('{"before":null,"after":{"k":1},"op":"x"}', "bad-value", "op"),
        ('{"before":null,"after":{"k":1}}', "bad-value", "op"),
        ('{"before":null,"after":{"k":1},"op":"u"}', "bad-value", "REPLICA IDENTITY"),
        ('{"before":{"k":1},"after":null,"op":"u"}', "bad-value", "after"),
        ('{"before":null,"after":{"k":"one"},"op":"c"}', "wrong-type", 'column "after.k" is INT'),
        ('{"before":null,"after":[],"op":"c"}', "wrong-type", 'column "after"'),
        ('{"before":null,"after":{"v":"a"},"op":"c"}', "missing-not-null", '"k"'),
        ('{"before":', "bad-json", "not JSON"),
        ("{}", "bad-value", "op"),
    ],
)
def test_a_debezium_record_that_makes_no_sense_is_dead(text, reason, words):
    good = '{"before":null,"after":{"k":1,"v":"a"},"op":"c"}'
    found = decode(DEBEZIUM, records(good, text, good))
    assert shown(found.changes) == [(1, "a"), (1, "a")]
    [(offset, given, detail)] = dead(DEBEZIUM, good, text, good)
    assert (offset, given) == (1, reason)
    assert words in detail


def test_debezium_metadata():
    source = table(
        {
            "db": t.STRING,
            "tab": t.STRING,
            "at": t.TimestampLtz(3),
            "seen": t.TimestampLtz(3),
            "all": t.Map(t.STRING, t.STRING),
            "o": t.BIGINT,
            "v": t.INT,
        },
        "debezium-json",
        metadata={
            "db": "value.source.database",
            "tab": "value.source.table",
            "at": "value.source.timestamp",
            "seen": "value.ingestion-timestamp",
            "all": "value.source.properties",
            "o": "offset",
        },
    )
    text = '{"before":{"v":1},"after":{"v":2},"op":"u","ts_ms":2000,"source":{"db":"d","table":"t","ts_ms":1000}}'
    beside = ("d", "t", datetime(1970, 1, 1, 0, 0, 1), datetime(1970, 1, 1, 0, 0, 2))
    pairs = [("db", "d"), ("table", "t"), ("ts_ms", "1000")]
    assert rows(source, text) == [(-1, (*beside, pairs, 0, 1)), (*beside, pairs, 0, 2)]


DEBEZIUM_METADATA = {
    "value.schema": None,
    "value.ingestion-timestamp": datetime(1970, 1, 1, 0, 0, 2),
    "value.source.timestamp": datetime(1970, 1, 1, 0, 0, 1),
    "value.source.database": "d",
    "value.source.schema": "s",
    "value.source.table": "t",
    "value.source.properties": [("db", "d"), ("schema", "s"), ("table", "t"), ("ts_ms", "1000")],
}
"""What `INSERTED` says of where it comes from, by METADATA key."""

INSERTED = (
    '{"before":null,"after":{"v":1},"op":"c","ts_ms":2000,"source":{"db":"d","schema":"s","table":"t","ts_ms":1000}}'
)


def of_debezium(key: str, *, wrapped: bool = False) -> Table:
    """A table with one METADATA column, `m`."""
    options = {"schema-include": "true"} if wrapped else {}
    return table({"m": METADATA_OF_FORMATS["debezium-json"][key]}, "debezium-json", options, metadata={"m": key})


@pytest.mark.parametrize("key", METADATA_OF_FORMATS["debezium-json"])
def test_each_metadata_key_of_debezium_is_read(key: str):
    assert rows(of_debezium(key), INSERTED) == [DEBEZIUM_METADATA[key]]


@pytest.mark.parametrize("key", METADATA_OF_FORMATS["debezium-json"])
def test_each_metadata_key_of_debezium_is_read_from_a_record_wrapped_with_its_schema(key: str):
    known = {**DEBEZIUM_METADATA, "value.schema": '{"type":"struct","fields":[]}'}
    text = f'{{"schema":{known["value.schema"]},"payload":{INSERTED}}}'
    assert rows(of_debezium(key, wrapped=True), text) == [known[key]]


def test_all_metadata_of_debezium_stands_beside_a_row_whatever_the_envelope():
    kinds = METADATA_OF_FORMATS["debezium-json"]
    columns = {**kinds, "v": t.INT}
    metadata = {key: key for key in kinds}
    plain = table(columns, "debezium-json", metadata=metadata)
    wrapped = table(columns, "debezium-json", {"schema-include": "true"}, metadata=metadata)
    beside = [DEBEZIUM_METADATA[key] for key in kinds if key != "value.schema"]
    assert next(iter(kinds)) == "value.schema"
    assert rows(plain, INSERTED) == [(None, *beside, 1)]
    assert rows(wrapped, f'{{"payload":{INSERTED},"schema":{{"name":"e"}}}}') == [('{"name":"e"}', *beside, 1)]
    assert rows(wrapped, f'{{"payload":{INSERTED}}}') == [(None, *beside, 1)]


@pytest.mark.parametrize("key", METADATA_OF_FORMATS["debezium-json"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_metadata_that_a_debezium_record_lacks_is_null(key: str, wrapped: bool):
    text = '{"after":{"v":1},"op":"c"}'
    assert rows(of_debezium(key, wrapped=wrapped), f'{{"payload":{text}}}' if wrapped else text) == [None]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1000", datetime(1970, 1, 1, 0, 0, 1)),
        ("-1", datetime(1969, 12, 31, 23, 59, 59, 999000)),
        ('"1000"', datetime(1970, 1, 1, 0, 0, 1)),
        ('"soon"', None),
        ('"1000 ms"', None),
        ('""', None),
        ("1.5", None),
        ("true", None),
        ("null", None),
        (str(2**63 - 1), None),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_time_of_a_debezium_source_is_null_where_it_is_no_whole_number(
    written: str, read: datetime | None, wrapped: bool
):
    text = f'{{"after":{{}},"op":"c","source":{{"ts_ms":{written}}}}}'
    given = f'{{"payload":{text}}}' if wrapped else text
    assert rows(of_debezium("value.source.timestamp", wrapped=wrapped), given) == [read]


def test_a_debezium_time_is_null_beyond_what_a_timestamp_can_hold_and_a_text_there_is_dead():
    source = table({"seen": t.TimestampLtz(3)}, "debezium-json", metadata={"seen": "value.ingestion-timestamp"})
    far = [f'{{"after":{{}},"op":"c","ts_ms":{number}}}' for number in (2**63 - 1, -(2**63))]
    assert rows(source, *far) == [None, None]
    assert [d[:2] for d in dead(source, '{"after":{},"op":"c","ts_ms":"soon"}')] == [(0, "wrong-type")]


def test_without_columns_the_rows_are_still_counted():
    text = '{"before":{"k":1,"v":"a"},"after":{"k":1,"v":"b"},"op":"u"}'
    assert decode(DEBEZIUM, records(text), []).changes["_weight"].to_pylist() == [-1, 1]


def test_changelog_records_are_one_row_each():
    texts = [f'{{"data":{{"k":{i},"v":"a"}},"op":"{op}"}}' for i, op in enumerate(["+I", "-U", "+U", "-D"])]
    assert rows(CHANGELOG, *texts) == [(0, "a"), (-1, (1, "a")), (2, "a"), (-1, (3, "a"))]


@pytest.mark.parametrize(
    "text", ['{"data":{"k":1},"op":"I"}', '{"data":{"k":1}}', '{"data":null,"op":"+I"}', '{"op":"+I"}']
)
def test_a_changelog_record_that_makes_no_sense_is_dead(text):
    assert [d[:2] for d in dead(CHANGELOG, text, None)] == [(0, "bad-value")]


def test_errors_that_are_ignored_pass_over_the_record():
    source = table(COLUMNS, "debezium-json", {"ignore-parse-errors": "true"})
    found = decode(source, records('{"op":"x"}', "{", '{"before":null,"after":{"k":"x","v":"a"},"op":"c"}'))
    assert shown(found.changes) == [(None, "a")]
    assert found.dead.num_rows == 0


def test_upsert_records_set_and_delete_the_row_of_their_key():
    found = rows(UPSERT, '{"k":1,"v":"a"}', None, '{"v":"b"}', key=[b'{"k":1}', b'{"k":1}', b'{"k":2}'])
    assert found == [(1, "a"), (-1, (1, None)), (2, "b")]


def test_an_upsert_record_without_a_key_is_dead():
    assert [d[:2] for d in dead(UPSERT, None, '{"k":1,"v":"a"}', None, key=[None, b'{"k":1}', b"{}"])] == [
        (0, "missing-not-null"),
        (2, "missing-not-null"),
    ]


def test_an_upsert_key_may_stand_in_the_key_alone():
    source = table(
        COLUMNS, kind="upsert-kafka", key=["k"], key_format=Format("json"), value_fields_include="EXCEPT_KEY"
    )
    found = rows(source, '{"v":"a"}', None, key=[b'{"k":1}', b'{"k":2}'])
    assert found == [(1, "a"), (-1, (2, None))]


def test_a_delete_needs_no_value_of_a_not_null_column():
    source = table(COLUMNS, kind="upsert-kafka", key=["k"], key_format=Format("json"), not_null=["v"])
    assert rows(source, None, '{"k":1}', key=[b'{"k":1}', b'{"k":1}']) == [(-1, (1, None))]
