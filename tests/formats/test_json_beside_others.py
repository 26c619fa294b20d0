"""A record of JSON is read as it is alone, and as the reference reads it, within any block of others."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.contract import DeadLetter
from service.formats.json import document, shapes
from service.formats.json.document import Document
from service.formats.json.options import JsonOptions
from service.formats.json.parse import Fields
from service.formats.json.part import fields_of
from service.formats.json.reference import Unreadable, reference_record
from service.plan import types as t
from tests.formats.hostile_json import columns, record

SQL = Sql()
OPTIONS = [
    JsonOptions(),
    JsonOptions(fail_on_missing=True),
    JsonOptions(ignore_errors=True),
    JsonOptions(standard="ISO-8601"),
]


def read(texts: list[str], fields: Fields, options: JsonOptions) -> list[Any]:
    """What a reader makes of each record of a block: values, bit by bit, or the reason why there are none."""
    bad: dict[int, DeadLetter] = {}
    block = pa.chunked_array([pa.array([text.encode() for text in texts], pa.binary())])
    found = [column.to_pylist() for column in fields_of(Document(fields, options), block, SQL, bad)]
    return [bad[i].reason if i in bad else [repr(column[i]) for column in found] for i in range(len(texts))]


def by_reference(text: str, fields: Fields, options: JsonOptions) -> Any:
    try:
        values = reference_record(text, fields.names, fields.types, options)
    except Unreadable as error:
        return "" if options.ignore_errors else error.reason
    arrays = [pa.array([value], t.arrow(type_)) for value, type_ in zip(values, fields.types, strict=True)]
    return [repr(array.to_pylist()[0]) for array in arrays]


@pytest.mark.parametrize("seed", range(24))
def test_a_record_is_read_alike_alone_and_in_any_block(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(seed)
    # Few records are worth to be sorted at times, and few of a shape to be read by themselves.
    monkeypatch.setattr(document, "_FEW", chance.choice([0, 1_000]))
    monkeypatch.setattr(shapes, "_WORTH", chance.choice([1, 50]))
    names, types = columns(chance)
    fields, options = Fields(names, types), chance.choice(OPTIONS)
    usual = [record(chance, names, types, 0.0) for _ in range(2)]
    texts = [record(chance, names, types, chance.choice([0.02, 0.3, 0.6])) for _ in range(30)]
    expected = [by_reference(text, fields, options) for text in texts]
    neighbours: dict[str, list[str]] = {"none": [], "usual": usual, "one that lacks names": ["{}"], "a bad one": ["{"]}
    for name, others in neighbours.items():
        found = [read([text, *others], fields, options)[0] for text in texts]
        assert list(zip(texts, found, strict=True)) == list(zip(texts, expected, strict=True)), name
    found = read(texts, fields, options)
    assert list(zip(texts, found, strict=True)) == list(zip(texts, expected, strict=True)), "each other"


@pytest.mark.parametrize("seed", range(100, 104))
def test_odd_records_in_a_large_block_of_usual_ones_are_read_as_the_reference_reads_them(seed: int) -> None:
    chance = Random(seed)
    names, types = columns(chance)
    fields, options = Fields(names, types), chance.choice(OPTIONS)
    texts = [record(chance, names, types, chance.choice([0, 0, 0, 0, 0.02, 0.3])) for _ in range(1_500)]
    expected = [by_reference(text, fields, options) for text in texts]
    found = read(texts, fields, options)
    assert [each for each in zip(texts, found, expected, strict=True) if each[1] != each[2]] == []


# What stood in one block was read otherwise in another, or than the reference says.
SPELLINGS = [
    (t.INT, '"5.0"', "5"),  # Flink fails.
    (t.INT, '"1e2"', "100"),  # Flink fails.
    (t.INT, '"1_0"', "10"),  # Flink fails.
    (t.INT, '"+-5"', "-5"),  # Flink fails.
    (t.INT, '"5.5"', "wrong-type"),
    (t.INT, "1e-400", "0"),
    (t.INT, "5.00000000000000000001", "5"),
    (t.INT, '"\u00a05"', "wrong-type"),
    (t.BIGINT, "9007199254740993.0", "9007199254740993"),
    (t.DOUBLE, "-0", "-0.0"),
    (t.Array(t.DOUBLE), "[-0]", "[-0.0]"),
    (t.DOUBLE, '"+-5"', "-5.0"),  # Flink fails.
    (t.FLOAT, "1.0000000596046448", "1.0"),
    (t.Decimal(38, 18), "123456789012345678901234567890", "bad-value"),
    (t.Decimal(38, 18), "3.4028235e38", "bad-value"),
    (t.Decimal(38, 18), "100000000000000000001e-10", "Decimal('10000000000.000000000100000000')"),
    (t.Decimal(10, 2), "9" * 400, "bad-value"),
    (t.DATE, '"infinity"', "wrong-type"),
    (t.DATE, '"0044-03-15 (BC)"', "wrong-type"),
    (t.DATE, '"10000-01-01"', "wrong-type"),
    (t.DATE, '"0000-01-01"', "wrong-type"),
    (t.Timestamp(3), '"infinity"', "wrong-type"),
    (t.Timestamp(3), '"0000-01-01 00:00:00"', "wrong-type"),
    (t.Time(0), '"24:00:00"', "wrong-type"),
    (t.BYTES, "infinity", "bad-json"),
    (t.BYTES, "1e400000", "wrong-type"),
    (t.Array(t.INT), "nan", "bad-json"),
    (t.Row(("x",), (t.INT,)), "nan", "bad-json"),
]


@pytest.mark.parametrize("other", [None, "usual", "{}", "{"])
@pytest.mark.parametrize(("type_", "spelled", "expected"), SPELLINGS)
def test_a_spelling_is_read_alike_whatever_stands_beside_it(type_, spelled, expected, other) -> None:
    chance = Random(1)
    beside = [] if other is None else [record(chance, ("k",), (type_,), 0.0) if other == "usual" else other]
    [found, *_] = read([f'{{"k":{spelled}}}', *beside], Fields(("k",), (type_,)), JsonOptions())
    assert found == (expected if expected in ("wrong-type", "bad-value", "bad-json") else [expected])


@pytest.mark.parametrize("other", [None, '{"a/b":null}', "{}", "{"])
@pytest.mark.parametrize(
    ("name", "record_", "type_", "expected"),
    [
        ("a/b", '{"a\\/b":1e2}', t.STRING, ["'1e2'"]),
        ("a/b", '{"a\\/b":0}', t.Array(t.INT), "wrong-type"),
        ("a/b", '{"a\\/b":1,"a/b":2}', t.INT, ["2"]),
        ('q"t', '{"q\\"t":1,"\\u0071\\"t":2}', t.INT, ["2"]),
        ("éé", '{"é\\u00e9":1.50}', t.STRING, ["'1.50'"]),
        ("\n", '{"\\u000a":1.50}', t.STRING, ["'1.50'"]),
    ],
)
def test_a_key_is_found_however_it_is_escaped(name, record_, type_, expected, other) -> None:
    beside = [] if other is None else [other.replace("a/b", "z" if name == "\n" else name.replace('"', '\\"'))]
    assert read([record_, *beside], Fields((name,), (type_,)), JsonOptions())[0] == expected


@pytest.mark.parametrize("word", ["NaN", "nan", "-nAn", "Infinity", "inf", "-INF", "infinity"])
@pytest.mark.parametrize("record_", ['{"k":1,"z":%s}', '{"k":1,"z":[%s],"k":1}', '{"k":1,"z":{"k":%s},}'])
def test_a_word_for_no_number_is_passed_over_where_it_is_not_read(word, record_) -> None:
    expected = "bad-json" if record_.endswith(",}") else ["1"]
    for beside in ([], ['{"k":2}'], ["{}"], ["{"]):
        assert read([record_ % word, *beside], Fields(("k",), (t.INT,)), JsonOptions())[0] == expected
