"""Tables of test cases, as people write them, are read and written as they are."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.local import cells, expected, text_table
from service.local.expected import Section
from service.plan import types
from service.plan.types import DataType


@pytest.fixture(scope="module")
def sql() -> Sql:
    return Sql()


def test_cells_lose_the_spaces_around_them_and_may_hold_a_bar():
    (batch,) = text_table.batches(r"|  a b | x\|y |  |")
    assert text_table.cells(batch.lines[0]) == ("a b", "x|y", "")


def test_a_line_of_dashes_ends_a_batch_and_a_rule_under_a_head_does_not():
    first, second, third = text_table.batches("# a note\n| a |\n|---|\n\n---\n-----\n| 1 |\n")
    assert [line.text for line in first.lines] == ["| a |", "|---|"]
    assert second.lines == ()
    assert third.lines[0].number == 7
    assert text_table.is_rule(first.lines[1])


VALUES: list[tuple[DataType, str, Any]] = [
    (types.BIGINT, "42", 42),
    (types.DOUBLE, "1.5", 1.5),
    (types.BOOLEAN, "true", True),
    (types.Decimal(10, 2), "12.50", Decimal("12.50")),
    (types.Decimal(38, 2), "-" + "9" * 36 + ".99", Decimal("-" + "9" * 36 + ".99")),
    (types.DATE, "2024-02-29", date(2024, 2, 29)),
    (types.Timestamp(3), "2024-01-01 00:00:05.25", datetime(2024, 1, 1, 0, 0, 5, 250_000)),
    (types.TimestampLtz(3), "2024-01-01 00:00:05Z", datetime(2024, 1, 1, 0, 0, 5)),
    (types.STRING, "plain text", "plain text"),
    (types.STRING, '""', ""),
    (types.STRING, '"NULL"', "NULL"),
    (types.STRING, '" padded "', " padded "),
    (types.STRING, r'"two\nlines"', "two\nlines"),
    (types.STRING, '"\\"quoted\\""', '"quoted"'),
    (types.STRING, "NULL", None),
    (types.BYTES, "x'00ff'", b"\x00\xff"),
    (types.Array(types.BIGINT), "[1,2]", [1, 2]),
    (types.Row(("a", "b"), (types.BIGINT, types.STRING)), '{"a":1,"b":"x"}', {"a": 1, "b": "x"}),
]


@pytest.mark.parametrize(("type_", "text", "value"), VALUES)
def test_a_cell_is_a_value_and_the_value_is_written_as_that_cell(type_: DataType, text: str, value: Any, sql: Sql):
    parsed = cells.parse([text], type_, sql)
    assert parsed.type == types.arrow(type_)
    assert parsed.to_pylist() == [value]
    assert cells.render(pa.chunked_array([parsed]), type_, sql) == [text]


@pytest.mark.parametrize("text", ["", "NULL"])
@pytest.mark.parametrize("type_", [types.BIGINT, types.STRING, types.BYTES, types.Array(types.INT)])
def test_nothing_is_null(text: str, type_: DataType, sql: Sql):
    assert cells.parse([text], type_, sql).to_pylist() == [None]


def test_a_cell_of_the_wrong_type_is_found(sql: Sql):
    with pytest.raises(cells.CellError, match='"many" is no BIGINT') as error:
        cells.parse(["1", "NULL", "many"], types.BIGINT, sql)
    assert error.value.index == 2


CHANGES = [
    (Section("", ("", "a"), (("+I", "long enough"),)),),
    (Section("", ("", "a"), ()),),
    (Section("", ("", "a"), (("-D", "x|y"),)), Section("over_1", ("b",), (("1",),))),
]


def test_what_is_written_is_read_again(tmp_path: Path):
    path = tmp_path / "out.changes"
    path.write_text(expected.written(CHANGES))
    before, between, after = expected.read(path, ("", "over_1"))
    assert before == CHANGES[0]
    assert between == ()
    assert after == CHANGES[2]


def test_all_tables_of_a_file_have_columns_of_one_width():
    lines = expected.written(CHANGES).splitlines()
    assert lines[:5] == ["|    | a           |", "|----|-------------|", "| +I | long enough |", "---", "---"]
    assert lines[5] == r"| -D | x\|y        |"


def test_rows_may_come_in_any_order_but_not_in_another_batch():
    one, two = ("+I", "1"), ("+I", "2")
    wanted = [(Section("", ("", "a"), (two, one)),), (Section("", ("", "a"), ()),)]
    assert expected.differences("t", wanted, [(Section("", ("", "a"), (one, two)),)]) == []
    assert expected.differences(
        "t", wanted, [(Section("", ("", "a"), (one,)),), (Section("", ("", "a"), (two,)),)]
    ) == [
        "t, batch 1:",
        "     |    | a |",
        "     |----|---|",
        "     | +I | 1 |",
        "   - | +I | 2 |  expected, but missing",
        "t, batch 2:",
        "     |    | a |",
        "     |----|---|",
        "   + | +I | 2 |  not expected",
    ]


def test_other_columns_are_a_difference():
    wanted, came = [(Section("", ("a",), (("1",),)),)], [(Section("", ("b",), (("1",),)),)]
    assert expected.differences("t", wanted, came)[1].strip() == "the columns are b; expected are a"
