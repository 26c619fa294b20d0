"""Blocks of JSON whose records are not alike: each is read as the reference reads it, whatever stands beside it."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import numpy as np
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
from service.formats.json.shapes import Shapes, expressible
from service.plan import types as t

SQL = Sql()
INNER = t.Row(("k", "n"), (t.STRING, t.INT))
NAMES = ("k", "n", "d", "row", "other", "list")
TYPES: tuple[t.DataType, ...] = (
    t.STRING,
    t.BIGINT,
    t.DOUBLE,
    t.Row(("k", "n", "in"), (t.STRING, t.INT, INNER)),
    INNER,
    t.Array(t.INT),
)
FIELDS = Fields(NAMES, TYPES)


@pytest.fixture
def _every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few records are worth to be sorted, too."""
    monkeypatch.setattr(document, "_FEW", 0)
    monkeypatch.setattr(shapes, "_WORTH", 1)


def expected(texts: list[bytes], fields: Fields, options: JsonOptions) -> list[Any]:
    """The values of each record, or why it has none, as the reference says."""
    found: list[Any] = []
    for text in texts:
        try:
            found.append(reference_record(text.decode(), fields.names, fields.types, options))
        except UnicodeDecodeError:
            found.append("bad-utf8")
        except Unreadable as error:
            found.append(error.reason)
    return found


def read(texts: list[bytes], fields: Fields, options: JsonOptions, reader: Document | None = None) -> list[Any]:
    """The values of each record of a block, or why it has none."""
    bad: dict[int, DeadLetter] = {}
    reader = reader or Document(fields, options)
    columns = fields_of(reader, pa.chunked_array([pa.array(texts, pa.binary())]), SQL, bad)
    rows = zip(*(c.to_pylist() for c in columns), strict=True)
    return [bad[i].reason if i in bad else list(row) for i, row in enumerate(rows)]


def as_lists(values: Any) -> Any:
    """Rows of the reference as Arrow shows them."""
    return [pa.array([v], t.arrow(type_)).to_pylist()[0] for v, type_ in zip(values, TYPES, strict=True)]


def record(chance: random.Random, odd: float) -> dict[str, Any]:
    """A record, each name of which is left out or null at times, or of another kind with the probability `odd`."""

    def maybe(values: dict[str, Any]) -> dict[str, Any]:
        kept = {}
        for name, value in values.items():
            drawn = chance.random()
            if drawn > 0.3:
                kept[name] = value
            elif drawn > 0.2:
                kept[name] = None
            elif drawn < odd:
                kept[name] = chance.choice(["7", 7, 1.5, True, {}, {"k": "v"}, [], [1], "x"])
        return kept

    inner = maybe({"k": "in", "n": chance.choice([0, 1, 2])})
    row = maybe({"k": "x", "n": chance.choice([0, 1, 5]), "in": inner})
    values = {"k": "text", "n": chance.choice([0, 1, 9]), "d": 1.5, "row": row, "other": dict(inner), "list": [1]}
    return maybe({**values, "more": {"k": 1, "n": True}})


@pytest.mark.usefixtures("_every_shape")
@pytest.mark.parametrize("options", [JsonOptions(), JsonOptions(fail_on_missing=True)])
@pytest.mark.parametrize(("seed", "odd"), [(1, 0.0), (2, 0.0), (3, 0.01), (4, 0.2)])
def test_records_that_lack_names_are_read_as_the_reference_reads_them(seed, odd, options) -> None:
    chance = random.Random(seed)
    texts = [json.dumps(record(chance, odd), separators=(",", ":")).encode() for _ in range(400)]
    if odd:
        texts[7], texts[99], texts[200] = b"{", b'{"k":"\xff"}', b'{"k":"a","k":"b"}'
    want = [v if isinstance(v, str) else as_lists(v) for v in expected(texts, FIELDS, options)]
    assert read(texts, FIELDS, options) == want


@pytest.mark.usefixtures("_every_shape")
@pytest.mark.parametrize(
    "odd",
    [
        b'{"n":1}',
        b'{"k":null,"n":1}',
        b'{"n":1,"row":{"k":"within"}}',
        b'{"n":1,"row":{}}',
        b'{"n":1,"row":[{"k":"x"}]}',
        b'{"n":1,"row":7}',
        b'{"\\u006b":"escaped","n":1}',
        b'{"n":1,"K":"other"}',
        b'{"n":1,"k.n":"other"}',
        b"{}",
        b"null",
        b"[]",
        b'{"n":true}',
        b'{"n":1,"n":2}',
        b'{"n":1,"k":"x","k":"y"}',
        b'{"n":1,"row":{"in":{"k":"x","k":"y"}}}',
    ],
)
def test_one_odd_record_is_read_as_the_reference_reads_it_and_so_are_its_neighbours(odd) -> None:
    usual = b'{"k":"a","n":5,"d":2.0,"row":{"k":"x","n":1,"in":{"k":"x","n":2}},"other":null,"list":null}'
    texts = [usual, usual.replace(b'"k":"a",', b""), odd, usual]
    want = [v if isinstance(v, str) else as_lists(v) for v in expected(texts, FIELDS, JsonOptions())]
    assert read(texts, FIELDS, JsonOptions()) == want


def test_a_record_without_a_name_does_not_send_the_others_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(text: str, *rest: Any) -> Any:
        asked.append(text)
        return reference_record(text, *rest)

    monkeypatch.setattr(document, "reference_record", counted)
    texts = [b'{"auction":null,"bid":{"auction":%d,"price":2}}' % i for i in range(3000)]
    texts[5] = b'{"bid":{"auction":5,"price":2}}'
    texts[6] = b'{"auction":null,"bid":{"auction":"x","price":2}}'
    row = t.Row(("auction", "price"), (t.BIGINT, t.BIGINT))
    fields = Fields(("auction", "bid"), (row, row))
    found = read(texts, fields, JsonOptions())
    assert found[6] == "wrong-type"
    assert [v for i, v in enumerate(found) if i != 6] == [
        [None, {"auction": i, "price": 2}] for i in range(3000) if i != 6
    ]
    assert len(asked) < 10


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("0", 0), ("true", "wrong-type"), ("false", "wrong-type")])
def test_a_boolean_is_no_number_wherever_its_key_stands(first, value, expected) -> None:
    fields = Fields(("a", "b"), (t.INT, t.Row(("a",), (t.INT,))))
    members = [f'"a":{value}', '"b":{"a":1}']
    text = "{" + ",".join(members if first == "a" else members[::-1]) + "}"
    wanted = expected if isinstance(expected, str) else [expected, {"a": 1}]
    assert read([b'{"a":0,"b":{"a":0}}', text.encode()], fields, JsonOptions())[1] == wanted
    inner = f'{{"a":1,"b":{{"a":{value}}}}}'
    wanted = expected if isinstance(expected, str) else [1, {"a": expected}]
    assert read([inner.encode()], fields, JsonOptions()) == [wanted]


EDGES = (0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5)


def test_bytes_that_are_no_text_are_no_json() -> None:
    """So that a block of which DuckDB reads every record as JSON need not be looked at before."""
    sequences = [bytes([a, b]) for a in range(0x80, 0x100) for b in EDGES]
    sequences += [bytes([a, b, c]) for a in range(0xE0, 0x100) for b in EDGES for c in EDGES]
    sequences += [bytes([a, b, c, d]) for a in (0xF0, 0xF1, 0xF4, 0xF5) for b in EDGES for c in EDGES for d in EDGES]
    for before, behind in (
        (b'{"a":"', b'"}'),
        (b'{"', b'":1}'),
        (b'{"a":1}', b""),
        (b"", b'{"a":1}'),
        (b'{"a":1 ', b"}"),
    ):
        texts = [before + each + behind for each in sequences]
        records = pa.table({"v": pa.array(texts, pa.binary()).view(pa.string())})
        valid = SQL("SELECT json_valid(v) AS ok FROM records", {"records": records})["ok"].to_numpy()
        for place in np.flatnonzero(valid):
            texts[place].decode()
    for text in (b'{"a":1} \xff', b'{"a":1,"b":"\xff"}', b'{"a":1}\xff', b'{"a":1,"\xff":1}'):
        assert read([b'{"a":2}', text, b'{"a":3}'], Fields(("a",), (t.INT,)), JsonOptions()) == [[2], "bad-utf8", [3]]


def test_blocks_of_a_topic_with_bytes_that_are_no_text_are_read_alike_without_them() -> None:
    reader = Document(Fields(("a",), (t.INT,)), JsonOptions())
    for _ in range(3):
        found = read([b'{"a":2}'] * 2000 + [b'{"a":"\xff"}'], Fields(("a",), (t.INT,)), JsonOptions(), reader)
        assert found == [[2]] * 2000 + ["bad-utf8"]


@pytest.mark.parametrize("name", ["it's", "é", "a b", "sel.ect", "[x]", "ключ", "$", "#", "a-b", "0", "'"])
def test_a_path_leads_to_any_name_that_it_can_hold(name) -> None:
    assert expressible((name,), (t.INT,))
    sorter = pickle.loads(pickle.dumps(Shapes(Fields((name, "z"), (t.INT, t.INT)), JsonOptions())))
    texts = [json.dumps({name: 1}), json.dumps({"z": 1}), json.dumps({name: None, "z": 2}, ensure_ascii=False)]
    groups = sorter.groups(pa.array([text for text in texts for _ in range(60)]), SQL)
    assert sorted((g.rows[0], len(g.rows), g.shape is None) for g in groups if len(g.rows)) == [
        (0, 60, False),
        (60, 60, False),
        (120, 60, False),
    ]


@pytest.mark.parametrize("name", ['q"uote', "\\", "a*"])
def test_names_that_a_path_cannot_hold_are_not_asked_for(name) -> None:
    assert not expressible(("a", "row"), (t.INT, t.Row((name,), (t.INT,))))


def test_more_names_than_one_number_has_digits_tell_shapes_apart() -> None:
    names = tuple(f"n{i}" for i in range(150))
    sorter = Shapes(Fields(names, (t.INT,) * 150), JsonOptions())
    whole = dict.fromkeys(names, 1)
    texts = [json.dumps({n: v for n, v in whole.items() if n != left}) for left in ("", "n0", "n63", "n149")]
    groups = sorter.groups(pa.array([text for text in texts for _ in range(60)]), SQL)
    assert sorted(g.rows.tolist() for g in groups if len(g.rows)) == [list(range(i, i + 60)) for i in (0, 60, 120, 180)]


class Counted:
    """The statements of DuckDB, counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return SQL(*args, **options)


def test_records_of_sparse_columns_are_not_sorted_block_after_block():
    names = tuple(f"c{i}" for i in range(40))
    random_ = random.Random(5)
    texts = [json.dumps({n: 1 for n in names if random_.random() < 0.2}).encode() for _ in range(2_000)]
    reader = Document(Fields(names, (t.INT,) * 40), JsonOptions())
    block = pa.chunked_array([pa.array([text.decode() for text in texts])])
    counts = []
    for _ in range(4):
        counted = Counted()
        reader.read(block, counted)  # type: ignore[arg-type]
        counts.append(counted.count)
    # Of the first block the names are asked for, and its shapes are found to be too many.
    assert counts[0] > counts[1]
    assert counts[1:] == [counts[1]] * 3


def test_names_that_are_too_many_are_not_asked_for():
    names = [f"c{i}" for i in range(300)]
    assert expressible(names[:200], [t.INT] * 200)
    assert not expressible(names, [t.INT] * 300)
