"""Whatever a record holds, and whatever is computed from it: it is a row or a dead letter, its neighbours are rows."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.contract import Decoded
from service.formats.registry import decoder, encoder
from service.local.runner import BatchOutput, LocalRunner
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.runtime.dead_rows import without_dead_rows
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read

COLUMNS = """id BIGINT, s STRING, n INT, b BIGINT, d DOUBLE, m DECIMAL(10, 2), ok BOOLEAN, day DATE, t TIME(3),
  ts TIMESTAMP(3), at TIMESTAMP_LTZ(3), raw BYTES, tags ARRAY<STRING>, more MAP<STRING, STRING>,
  r ROW<a INT, b STRING>"""
TABLES = f"""
CREATE TABLE plain ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka',
  'topic' = 't', 'format' = 'json', 'properties.group.id' = 'g', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE cdc ({COLUMNS}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'debezium-json',
  'properties.group.id' = 'g', 'debezium-json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE log ({COLUMNS}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'changelog-json',
  'properties.group.id' = 'g', 'changelog-json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE o (id BIGINT, x STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'changelog-json');
"""
GOOD = {"id": 1, "s": "a", "n": 1, "b": 1, "d": 1.5, "ts": "2020-01-01T00:00:00", "at": "2020-01-01T00:00:00Z"}


def nested(depth: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * depth + "1" + closing * depth


TEXTS = [
    *(nested(depth) for depth in (10, 300, 400, 700, 1000, 1100, 5000)),
    *(nested(depth, "[", "]") for depth in (300, 600, 1000, 5000)),
    '"' + "x" * 1_000_000 + '"',
    json.dumps("\U0001f600" * 100_000),
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "1" * 5000,
    "0." + "0" * 5000 + "1",
    "99999999999999999999999999999999999999999",
    "-0",
    "true",
    "null",
    "[]",
    "{}",
    '"999999-12-31T23:59:59Z"',
    '"0000-01-01"',
    '"-290308-12-22 00:00:00"',
    '"infinity"',
    '"24:00:00"',
    '"' + "\\\\" * 10_000 + '"',
    '{"a": {"a": 1, "a": 2}, "a": 3}',
]
FIELDS = ["s", "n", "b", "d", "m", "ok", "day", "t", "ts", "at", "raw", "tags", "more", "r", "unknown"]
WRAPPED = {
    "plain": "{}",
    "cdc": '{{"before": null, "after": {}, "op": "c"}}',
    "log": '{{"data": {}, "op": "+I"}}',
}
BROKEN = [b"", b"\xff\xfe", b"{", b"[" * 100_000, b'{"a":' * 100_000, b'"', b"nul", b"\x00", b"{}{}", b'{"id": 1', b"7"]


def run(program: Program, values: Sequence[bytes]) -> BatchOutput:
    (source,) = program.sources
    runner = LocalRunner(program, {source.id: decoder(source.table, source.columns)}, 2, Sql())
    return runner.batch(
        {source.id: [records(values)]}, Tick({source.id: (channel_name(source.id, "t", 0),)}, ()), 1_000
    )


def records(values: Sequence[bytes]) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["t"] * count, pa.string()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )


def ids(program: Program, found: BatchOutput) -> list[int]:
    """The ids of the rows that come out, which all can be written."""
    made: list[int] = []
    for output in program.outputs:
        changes = found.outputs.get(output.id)
        if changes is not None:
            made += changes["c0"].to_pylist()
            written = encoder(output.table, output.columns, program.name, output.key, 1).encode(changes, Sql())
            assert written.num_rows == changes.num_rows
    return made


def lost(found: BatchOutput) -> int:
    """How many records and rows went to the dead letters."""
    tables = [*found.dead_records.values(), *(table for each in found.dead.values() for table in each)]
    return sum(int(table.num_rows) for table in tables)


@pytest.mark.parametrize("table", WRAPPED)
@pytest.mark.parametrize("field", FIELDS)
def test_a_hostile_value_is_a_row_or_a_dead_letter(table: str, field: str):
    every = ", ".join(f"CAST({f} AS STRING)" for f in ("s", "n", "b", "d", "m", "ok", "day", "t", "ts", "at"))
    query = f"SELECT id, CONCAT_WS('|', {every}, CAST(CARDINALITY(tags) AS STRING), r.b) FROM {table}"
    program = compile_job(read(f"{TABLES}INSERT INTO o {query};").jobs[0])
    rest = json.dumps({k: v for k, v in GOOD.items() if k not in ("id", field)})[1:-1]
    values = []
    for number, text in enumerate(TEXTS):
        values.append(WRAPPED[table].format(f'{{"id": {2 * number}, "{field}": {text}, {rest}}}').encode())
        values.append(WRAPPED[table].format(json.dumps({**GOOD, "id": 2 * number + 1})).encode())
    found = run(program, values)
    made = ids(program, found)
    assert {2 * number + 1 for number in range(len(TEXTS))} <= set(made)
    assert len(made) + lost(found) == len(values)


@pytest.mark.parametrize("table", WRAPPED)
def test_bytes_that_are_no_record_are_dead_letters(table: str):
    program = compile_job(read(f"{TABLES}INSERT INTO o SELECT id, s FROM {table};").jobs[0])
    good = [WRAPPED[table].format(json.dumps({**GOOD, "id": i})).encode() for i in range(2)]
    found = run(program, [good[0], *BROKEN, good[1]])
    assert (len(ids(program, found)), lost(found)) == (2, len(BROKEN))


CSV_OPTIONS = [
    {},
    {"escape-character": "\\"},
    {"escape-character": "\\\\"},
    {"disable-quote-character": "true"},
    {"disable-quote-character": "true", "escape-character": "\\"},
    {"field-delimiter": "\\t", "quote-character": "''"},
    {"null-literal": "null", "array-element-delimiter": "|"},
]
CSV_TYPES = ["STRING", "INT", "DOUBLE", "DECIMAL(10, 2)", "BOOLEAN", "DATE", "TIMESTAMP(3)", "BYTES", "ARRAY<STRING>"]


@pytest.mark.parametrize("options", CSV_OPTIONS)
def test_whatever_stands_in_a_line_of_csv_is_a_row_or_a_dead_letter(options: dict[str, str]):
    rng = random.Random(1)
    cells = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(CSV_TYPES))
    given = ", ".join(f"'csv.{name}' = '{value}'" for name, value in options.items())
    pipeline = f"""{TABLES}
    CREATE TABLE lines (id BIGINT, {cells}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'csv',
      'properties.group.id' = 'g'{", " if given else ""}{given});
    CREATE TABLE written (id BIGINT, {cells}) WITH ('connector' = 'kafka', 'topic' = 'w', 'format' = 'csv'
      {", " if given else ""}{given});
    INSERT INTO written SELECT * FROM lines;"""
    program = compile_job(read(pipeline).jobs[0])
    delimiter = "\t" if "field-delimiter" in options else ","
    every = [
        *STRINGS,
        '"',
        "'",
        ",",
        ";",
        "|",
        "\t",
        "\n",
        "\r\n",
        "\\",
        "\\n",
        "#",
        "null",
        " ",
        "1",
        "2020-01-01",
        "YQ==",
    ]
    values = []
    for i in range(600):
        texts = ["".join(rng.choices(every, k=rng.choice([0, 1, 1, 2, 3]))) for _ in CSV_TYPES]
        if i % 3 == 0:
            texts = ["x", "7", "1.5", "2.50", "true", "2020-01-01", "2020-01-01 00:00:00", "YQ==", "a"]
        values.append(delimiter.join([str(i), *texts]).encode())
    values += [b"", b"\xff", b"\n", b'"' * 99_999, b",", b"\x00", b"\\"]
    found = run(program, values)
    made = ids(program, found)
    assert {i for i in range(600) if i % 3 == 0} <= set(made)
    assert len(made) + lost(found) == len(values)


NUMBERS = [0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 10**9]
DOUBLES = ["0.0", "-0.0", "1e308", "-1e308", "5e-324", '"NaN"', '"Infinity"', '"-Infinity"']
STRINGS = ["", "a", "\u0000", "\U0001f600" * 50, "x" * 100_000, "%_\\", "(((", "[a-", "$.a", "{", "1e400", "'", "é" * 9]
TIMES = ["0001-01-01T00:00:00", "9999-12-31T23:59:59", "1970-01-01T00:00:00", "2020-02-29T12:00:00"]
EXPRESSIONS = [
    "REPEAT(s, n)",
    "REPEAT(CONCAT(s, 'xyz'), n)",
    "LPAD(s, n, 'ab')",
    "RPAD(s, n, s)",
    "CAST(CHAR_LENGTH(REPEAT('x', n)) AS STRING)",
    "SUBSTRING(s, n)",
    "SUBSTRING(s, n, n)",
    "OVERLAY(s PLACING 'x' FROM n)",
    "LEFT(s, n)",
    "RIGHT(s, n)",
    "SPLIT_INDEX(s, 'a', n)",
    "REGEXP_REPLACE(s, 'a*', 'b')",
    "REGEXP_EXTRACT(s, '(a)', 1)",
    "CAST(s LIKE '%a%' AS STRING)",
    "TO_BASE64(s)",
    "FROM_BASE64(s)",
    "DECODE(UNHEX(s), 'UTF-8')",
    "SHA2(s, 256)",
    "URL_DECODE(s)",
    "PARSE_URL(s, 'HOST')",
    "PARSE_URL(s, s)",
    "PARSE_URL('http://h?' || s, 'QUERY', s)",
    "JSON_VALUE(s, '$.a')",
    "JSON_QUERY(s, '$.a')",
    "CAST(b + b AS STRING)",
    "CAST(b * b AS STRING)",
    "CAST(-b AS STRING)",
    "CAST(ABS(b) AS STRING)",
    "CAST(b / n AS STRING)",
    "CAST(b % n AS STRING)",
    "CAST(POWER(d, d) AS STRING)",
    "CAST(EXP(d) AS STRING)",
    "CAST(LN(d) AS STRING)",
    "CAST(ROUND(d, 2) AS STRING)",
    "CAST(CAST(d AS INT) AS STRING)",
    "CAST(CAST(d AS DECIMAL(10, 2)) AS STRING)",
    "CAST(CAST(s AS INT) AS STRING)",
    "CAST(CAST(s AS TIMESTAMP(3)) AS STRING)",
    "CAST(TRY_CAST(s AS DOUBLE) AS STRING)",
    "CAST(TIMESTAMPADD(DAY, n, ts) AS STRING)",
    "CAST(TIMESTAMPADD(YEAR, n, ts) AS STRING)",
    "CAST(TIMESTAMPDIFF(SECOND, ts, TIMESTAMP '1970-01-01 00:00:00') AS STRING)",
    "CAST(ts + INTERVAL '9999' DAY AS STRING)",
    "DATE_FORMAT(ts, 'yyyy-MM-dd')",
    "CAST(TO_TIMESTAMP(s) AS STRING)",
    "CAST(TO_TIMESTAMP_LTZ(b, 3) AS STRING)",
    "FROM_UNIXTIME(b)",
    "CAST(CEIL(ts TO YEAR) AS STRING)",
    "CAST(EXTRACT(DOY FROM ts) AS STRING)",
    "CHR(n)",
    "HEX(b)",
    "BIN(b)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_cannot_be_computed_from_a_hostile_row_costs_that_row_alone(expression: str):
    program = compile_job(read(f"{TABLES}INSERT INTO o SELECT id, {expression} FROM plain;").jobs[0])
    count = 3 * len(STRINGS)
    values = []
    for i in range(count):
        n, b = NUMBERS[i % len(NUMBERS)], NUMBERS[(i // 3) % len(NUMBERS)]
        row = {**GOOD, "id": i, "n": max(min(n, 2**31 - 1), -(2**31)), "b": b}
        row |= {"s": STRINGS[i % len(STRINGS)], "ts": TIMES[i % len(TIMES)]}
        values.append(json.dumps(row).replace('"d": 1.5', f'"d": {DOUBLES[i % len(DOUBLES)]}').encode())
    found = run(program, values)
    made = ids(program, found)
    assert len(made) == len(set(made))
    assert len(made) + lost(found) == count


LONG = 100_000
LONG_ARRAYS = {
    "ARRAY_DISTINCT(tags)": LONG // 2,
    "ARRAY_UNION(tags, ARRAY['x'])": LONG // 2 + 1,
    "ARRAY_EXCEPT(tags, ARRAY_SLICE(tags, 11))": 0,
    "ARRAY_INTERSECT(tags, ARRAY_REVERSE(tags))": LONG // 2,
    "STR_TO_MAP(ARRAY_JOIN(tags, ','), ',', ':')": LONG // 2,
    "MAP_UNION(STR_TO_MAP(ARRAY_JOIN(tags, ',')), STR_TO_MAP(ARRAY_JOIN(tags, 'x,')))": LONG,
}
"""Functions of 100,000 texts of which each is there twice, with the number of elements that they return."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("expression", LONG_ARRAYS)
def test_a_row_with_a_long_array_does_not_stall_its_job(expression: str):
    query = f"INSERT INTO o SELECT id, CAST(CARDINALITY({expression}) AS STRING) FROM plain;"
    program = compile_job(read(TABLES + query).jobs[0])
    found = run(program, [json.dumps({**GOOD, "tags": [f"k{i % (LONG // 2)}" for i in range(LONG)]}).encode()])
    (changes,) = found.outputs.values()
    assert changes["c1"].to_pylist() == [str(LONG_ARRAYS[expression])]


PATTERNS = {
    "x" * LONG: False,
    "x?" * LONG: False,
    "((x{1,100}){1,100})y": False,
    "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": True,
    "x{3}y?": True,
    "(((": False,
    "": True,
}
"""Regular expressions from rows, and whether they are matched against a text of 100,000 characters."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "call",
    [
        "REGEXP(s, r.b)",
        "REGEXP_EXTRACT(s, r.b)",
        "REGEXP_REPLACE(s, r.b, 'y')",
        "REGEXP_COUNT(s, r.b)",
        "REGEXP_INSTR(s, r.b)",
    ],
)
def test_a_regular_expression_of_a_row_that_takes_too_long_is_a_dead_letter(call: str):
    program = compile_job(read(f"{TABLES}INSERT INTO o SELECT id, CAST({call} AS STRING) FROM plain;").jobs[0])
    rows = [{**GOOD, "id": i, "s": "x" * LONG, "r": {"b": each}} for i, each in enumerate(PATTERNS)]
    found = run(program, [json.dumps(row).encode() for row in rows])
    assert ids(program, found) == [i for i, matched in enumerate(PATTERNS.values()) if matched]
    reasons = [reason for each in found.dead.values() for table in each for reason in table["_reason"].to_pylist()]
    assert sum("takes too long" in reason for reason in reasons) == 3


class _Fails:
    """A decoder that has a fault nobody knows of: it does not like some records."""

    def __init__(self, hated: set[int], error: Exception) -> None:
        self._hated, self._error = hated, error

    def needs(self) -> tuple[str, ...]:
        return ("value",)

    def decode(self, block: pa.Table, sql: Sql) -> Decoded:
        if self._hated & set(block["offset"].to_pylist()):
            raise self._error
        source = compile_job(read(f"{TABLES}INSERT INTO o SELECT id, s FROM plain;").jobs[0]).sources[0]
        return decoder(source.table, source.columns).decode(block, sql)


@pytest.mark.parametrize(
    "error", [RuntimeError("a fault"), RecursionError(), MemoryError(), duckdb.InternalException("x"), KeyError("k")]
)
def test_a_record_with_which_a_decoder_cannot_cope_is_found_in_its_block(error: Exception):
    program = compile_job(read(f"{TABLES}INSERT INTO o SELECT id, s FROM plain;").jobs[0])
    (source,) = program.sources
    runner = LocalRunner(program, {source.id: _Fails({3, 17}, error)}, 2, Sql())
    values = [json.dumps({**GOOD, "id": i}).encode() for i in range(30)]
    tick = Tick({source.id: (channel_name(source.id, "t", 0),)}, ())
    found = runner.batch({source.id: [records(values)]}, tick, 1_000)
    (dead,) = found.dead_records.values()
    assert ids(program, found) == [i for i in range(30) if i not in (3, 17)]
    assert dead["offset"].to_pylist() == [3, 17]
    assert dead["reason"].to_pylist() == ["not-decoded"] * 2
    assert dead["value"].to_pylist() == [values[3], values[17]]


@pytest.mark.parametrize("error", [OSError("no space left"), duckdb.IOException("no space left")])
def test_a_machine_that_fails_is_no_fault_of_a_row(error: Exception):
    def compute(rows: pa.Table) -> None:
        raise error

    with pytest.raises(type(error)):
        without_dead_rows(pa.table({"a": [1, 2, 3]}), compute)
