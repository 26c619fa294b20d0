"""Records that lack names are believed where they have as many keys with a value as values came out of them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.json import document
from service.formats.json.buffers import Rows
from service.formats.json.document import Document
from service.formats.json.fast import Texts
from service.formats.json.keys import Keys, last_bytes
from service.formats.json.options import JsonOptions
from service.formats.json.parse import Fields, ParseMode, Statement
from service.plan import types as t

SQL = Sql()
ROW = t.Row(("x", "deep"), (t.INT, t.Row(("y",), (t.INT,))))
FIELDS = Fields(
    ("a", "text", "billing_address", "r", "list"),
    (t.INT, t.STRING, t.STRING, ROW, t.Array(t.INT)),
)


@pytest.mark.parametrize("mode", [ParseMode.COUNTED_NUMBERS, ParseMode.COUNTED])
@pytest.mark.parametrize(
    ("record", "counted"),
    [
        ('{"a":1,"text":"x","billing_address":"y","r":{"x":1,"deep":{"y":2}},"list":[1]}', True),
        ('{"a":1}', True),
        ("{}", True),
        ('{"a":null}', True),
        ('{"a":null,"text": null , "list":\tnull}', True),
        ('{ "a" : 1 , "text" : "x" }', True),
        ('{"text":"a \\":null"}', True),
        ('{"r":{"x":null,"deep":{"y":2}}}', True),
        ('{"r":null,"unread":null}', True),
        # More keys than values: one that is not wanted, stands twice, or has a value of another kind.
        ('{"a":1,"unread":2}', False),
        ('{"a":1,"a":2}', False),
        ('{"a":1,"\\u0061":2}', False),
        ('{"a" :1,"a"\t:2}', False),
        ('{"r":7}', False),
        ('{"r":{}}', False),
        ('{"r":{"x":1,"x":2}}', False),
        ('{"list":7}', False),
        ('{"text":{"a":1}}', False),
        ('{"text":"a \\":1"}', False),
        # As many, but a name may stand twice, once with null.
        ('{"a":1,"a":null}', False),
        ('{"a":null,"a":1}', False),
        ('{"a":1,"a" :null}', False),
        ('{"text":"x","a" : null}', False),
        ('{"billing_address":"x","shipping_address":null}', False),
        ('{"text":"x","context":null}', True),
    ],
)
def test_a_record_counts_if_each_of_its_values_came_out(record: str, counted: bool, mode: ParseMode):
    read = Statement(FIELDS, JsonOptions(), mode).read(pa.array(['{"a":1}', record, '{"text":"y"}']), SQL)
    assert read is not None
    assert read.uncounted is not None
    assert read.uncounted.tolist() == [False, not counted, False]


@pytest.mark.parametrize(
    "name", ["a", "", "text", "seven77", "eight888", "billing_address", 'q"t', "a\\", '"', "größe"]
)
def test_a_key_is_known_by_its_last_bytes_wherever_it_stands(name: str):
    spelled = json.dumps(name, ensure_ascii=False)
    texts = [f"{{{spelled}:null}}", f'{{"other":"text",{spelled}: null}}', f'{{"o":{{"p":[{{{spelled}:null}}]}}}}']
    for text in (*texts, "".join(texts)):
        rows, words = Keys(pa.array([text])).nulls()
        assert set(words.tolist()) == {last_bytes(name)}
        assert set(rows.tolist()) == {0}


class Noted:
    """The statements of DuckDB, noted."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str, *rest: Any, **options: Any) -> Any:
        self.texts.append(text)
        return SQL(text, *rest, **options)


def test_records_that_lack_each_another_of_many_names_are_read_by_one_statement(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(document, "reference_record", None)
    names = tuple(f"column_{i}" for i in range(300))
    types = tuple(t.BIGINT if i % 2 else t.STRING for i in range(300))
    whole = {name: i if i % 2 else f"text {i}" for i, name in enumerate(names)}
    rows = [{**whole, names[i]: None} for i in range(300)]
    texts = [json.dumps({k: v for k, v in row.items() if v is not None}) for row in rows]
    reader = Document(Fields(names, types), JsonOptions())
    for _ in range(2):
        noted = Noted()
        read = reader.read(pa.chunked_array([pa.array(texts)]), noted)  # type: ignore[arg-type]
        assert [column.to_pylist() for column in read.columns] == [[row[name] for row in rows] for name in names]
    assert len(noted.texts) == 1


def test_whole_records_of_many_names_are_not_searched_for_each(monkeypatch: pytest.MonkeyPatch):
    searched: list[str] = []

    def noted(texts: Texts, rows: Rows, pattern: str) -> bool:
        searched.append(pattern)
        return any_match(texts, rows, pattern)

    any_match = Texts.any_match
    monkeypatch.setattr(Texts, "any_match", noted)
    names = tuple(f"column_{i}" for i in range(300))
    texts = [json.dumps(dict.fromkeys(names, i % 2)) for i in range(50)]
    reader = Document(Fields(names, (t.BIGINT,) * 300), JsonOptions())
    read = reader.read(pa.chunked_array([pa.array(texts)]), SQL)
    assert read.columns[7].to_pylist() == [i % 2 for i in range(50)]
    assert len(searched) < 20


@pytest.mark.parametrize(("wrong", "place"), [("true", 0), ("false", 60), (" true", 39), ("\n true", 7)])
def test_a_boolean_among_the_numbers_of_many_columns_is_dead(wrong: str, place: int):
    names = (*(f"column_{i}" for i in range(60)), "flag")
    good = json.dumps({**dict.fromkeys(names, 1), "flag": True}, separators=(",", ":"))
    bad = good.replace(f'"{names[place]}":1', f'"{names[place]}":{wrong}')
    reader = Document(Fields(names, (*(t.BIGINT,) * 60, t.BOOLEAN)), JsonOptions())
    read = reader.read(pa.chunked_array([pa.array([good, bad, good])]), SQL)
    assert {row: letter.reason for row, letter in read.bad.items()} == ({1: "wrong-type"} if place < 60 else {})
