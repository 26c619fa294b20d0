"""The hash of rows: it depends on the values of a row and on nothing else, or a key would be looked for elsewhere."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from operators import hashing
from operators.hashing import bucket_hash
from operators.sql import Sql

SQL = Sql()
PLACE = pa.struct([("x", pa.int32()), ("y", pa.string())])

VALUES = {
    "BOOLEAN": (pa.bool_(), [True, False, None]),
    "TINYINT": (pa.int8(), [0, 1, -1, None]),
    "BIGINT": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), None]),
    "FLOAT": (pa.float32(), [0.0, 1.5, float("nan"), float("inf"), None]),
    "DOUBLE": (pa.float64(), [0.0, 1.5, -1.5, float("nan"), float("-inf"), None]),
    "DECIMAL": (pa.decimal128(38, 2), [Decimal("0.00"), Decimal("-0.01"), Decimal("9" * 36 + ".99"), None]),
    "STRING": (pa.string(), ["", "a", "b", "\0", "a\0", "eightbyt", "eightbyte", "longer than two words", "é", None]),
    "long STRING": (
        pa.string(),
        ["x" * 255, "x" * 256, "x" * 257, "y" + "x" * 255, "x" * 255 + "y", "é" * 999],
    ),
    "BYTES": (pa.binary(), [b"", b"\0", b"\0\0", b"12345678", b"123456789", None]),
    "DATE": (pa.date32(), [date(1970, 1, 1), date(2024, 2, 29), None]),
    "TIME": (pa.time64("us"), [time(0), time(23, 59, 59, 999_999), None]),
    "TIMESTAMP": (pa.timestamp("us"), [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), None]),
    "ARRAY of numbers": (pa.list_(pa.int32()), [[], [0], [0, 0], [1, 2], [2, 1], [None], None]),
    "ARRAY of texts": (pa.list_(pa.string()), [[], [""], ["", ""], ["a", "b"], ["ab"], ["ab", ""], [None], None]),
    "ARRAY of arrays": (pa.list_(pa.list_(pa.int32())), [[], [[]], [[], []], [[1], [2]], [[1, 2]], None]),
    "ROW": (PLACE, [{"x": 1, "y": ""}, {"x": None, "y": ""}, {"x": 1, "y": None}, {"x": 1, "y": "1"}, None]),
    "MAP": (pa.map_(pa.string(), pa.int32()), [[], [("", 1)], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)], None]),
}
COLUMNS = [pytest.param(*column, id=name) for name, column in VALUES.items()]


def hashed(values, type_) -> list[int]:
    found: list[int] = bucket_hash(pa.table([pa.array(values, type_)], names=["c0"]), (0,)).tolist()
    return found


@pytest.mark.parametrize(("type_", "values"), COLUMNS)
def test_different_values_have_different_hashes(type_, values):
    hashes = hashed(values, type_)
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize(("type_", "values"), COLUMNS)
def test_a_value_has_one_hash_whatever_stands_beside_it(type_, values):
    alone = [hashed([value], type_)[0] for value in values]
    assert hashed(values, type_) == alone
    for i, j in combinations(range(len(values)), 2):
        assert hashed([values[j], values[i]], type_) == [alone[j], alone[i]]


@pytest.mark.parametrize(("type_", "values"), COLUMNS)
def test_a_value_has_one_hash_however_its_block_is_cut_and_wherever_it_comes_from(type_, values):
    table = pa.table([pa.array(values, type_)], names=["c0"])
    expected = hashed(values, type_)
    cut = pa.concat_tables([table.slice(i, 1) for i in range(len(values))])
    assert bucket_hash(cut, (0,)).tolist() == expected
    assert bucket_hash(table.slice(1), (0,)).tolist() == expected[1:]
    assert bucket_hash(table.take(pa.array(range(len(values)))[::-1]), (0,)).tolist() == expected[::-1]
    assert bucket_hash(SQL("SELECT c0 FROM t", {"t": table}), (0,)).tolist() == expected


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_equal_numbers_have_one_hash_though_their_bits_differ(type_):
    assert len(set(hashed([0.0, -0.0], type_))) == 1
    payload = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    assert len(set(bucket_hash(pa.table([pa.array(payload)], names=["c0"]), (0,)).tolist())) == 1


def test_a_key_of_several_columns_knows_their_order_and_their_bounds():
    table = pa.table({"c0": ["a", "ab", ""], "c1": ["b", "", "ab"]})
    one, other = bucket_hash(table, (0, 1)).tolist(), bucket_hash(table, (1, 0)).tolist()
    assert len({*one, *other}) == 4  # ("ab", "") read backwards is ("", "ab")
    assert len(set(bucket_hash(table, ()).tolist())) == 1


def test_a_block_without_rows_has_no_hashes():
    for type_, _ in VALUES.values():
        assert hashed([], type_) == []


def test_the_passes_over_a_column_follow_its_short_texts(monkeypatch: pytest.MonkeyPatch):
    """One long text beside many short ones made a pass for each of its words, over all of them."""
    passes = []
    folding = hashing._fold_words

    def counted(hashes, words):
        passes.append(len(words))
        return folding(hashes, words)

    monkeypatch.setattr(hashing, "_fold_words", counted)
    hashed(["short"] * 1_000 + ["x" * 1_000_000], pa.string())
    assert sum(passes) < 10_000
