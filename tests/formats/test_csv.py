"""CSV in and out: cells by position, quotes where they are needed, and one bad line disturbs no other."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal as Number

import pytest

from service.formats.csv.lines import LineParser, MalformedLineError
from service.formats.csv.options import CsvOptions
from service.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Array,
    Decimal,
    Timestamp,
    TimestampLtz,
)
from tests.formats.wire import dead, decode, encode, records, rows, shown, table, values

PAYMENTS = table({"id": BIGINT, "who": STRING, "amount": DOUBLE}, "csv")


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("1,ann,2.5", (1, "ann", 2.5)),
        (" 1 , ann ,-2", (1, " ann ", -2.0)),
        ('1,"ann, the first",2', (1, "ann, the first", 2.0)),
        ('1,"say ""hi""",2', (1, 'say "hi"', 2.0)),
        ('1,"two\nlines",2', (1, "two\nlines", 2.0)),
        ("1,,", (1, "", None)),
        (",x,", (None, "x", None)),
        ("1,ann,2\r\n", (1, "ann", 2.0)),
        ('1,"ann" \t,2', (1, "ann", 2.0)),
        ('1,ann "the first",2', (1, 'ann "the first"', 2.0)),
        (f'1,"{"x" * 200_000}",2', (1, "x" * 200_000, 2.0)),
    ],
)
def test_a_line_is_read_by_the_positions_of_its_cells(line: str, row: tuple[object, ...]):
    assert rows(PAYMENTS, line) == [row]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("1,ann", "bad-csv", "the table has 3 columns, but the record has 2"),
        ("1,ann,2,3", "bad-csv", "the table has 3 columns, but the record has 4"),
        ("x,ann,2", "wrong-type", 'column "id" is BIGINT, but the record has "x"'),
        ("3.7,ann,2", "wrong-type", 'column "id" is BIGINT, but the record has "3.7"'),
        ("1,ann,two", "wrong-type", 'column "amount" is DOUBLE, but the record has "two"'),
        (b"1,\xff,2", "bad-utf8", "the value is not UTF-8 text"),
        ('1,"ann,2', "bad-csv", "the quote of cell 2 is not closed"),
        ('1, "ann, the first",2', "bad-csv", "the table has 3 columns, but the record has 4"),
        ('1,"ann"x,2', "bad-csv", 'the character "x" follows the closing quote of cell 2'),
        ("1,ann,2\n2,bob,2", "bad-csv", "the record has more than one line"),
        ('"', "bad-csv", "the quote of cell 1 is not closed"),
    ],
)
def test_a_line_that_cannot_be_read_says_why_and_its_neighbours_go_on(line: str | bytes, reason: str, detail: str):
    found = decode(PAYMENTS, records("1,ann,1", line, '2,"bob",2'))
    assert shown(found.changes) == [(1, "ann", 1.0), (2, "bob", 2.0)]
    assert dead(PAYMENTS, "1,ann,1", line, '2,"bob",2') == [(1, reason, detail)]


@pytest.mark.parametrize(
    ("type_", "cell", "value"),
    [
        (BOOLEAN, "TRUE", True),
        (INT, "-5", -5),
        (Decimal(5, 2), "1.005", Number("1.01")),
        (DATE, "2024-02-29", date(2024, 2, 29)),
        (Timestamp(3), "2024-02-29 12:30:00.123", datetime(2024, 2, 29, 12, 30, 0, 123000)),
        (TimestampLtz(3), "2024-02-29 12:30:00Z", datetime(2024, 2, 29, 12, 30)),
        (BYTES, "YWI=", b"ab"),
        (Array(INT), "1;2;3", [1, 2, 3]),
    ],
)
def test_a_cell_is_read_as_its_type_and_written_again(type_, cell: str, value: object):
    source = table({"a": type_, "b": STRING}, "csv")
    assert rows(source, f"{cell},x") == [(value, "x")]


@pytest.mark.parametrize(
    ("options", "line", "row"),
    [
        ({"field-delimiter": ";"}, "1;ann;2", (1, "ann", 2.0)),
        ({"field-delimiter": "\\t"}, "1\tann\t2", (1, "ann", 2.0)),
        ({"quote-character": "'"}, "1,'a,b',2", (1, "a,b", 2.0)),
        ({"disable-quote-character": "true"}, '1,"ann",2', (1, '"ann"', 2.0)),
        ({"escape-character": "\\"}, '1,"a\\"b",2', (1, 'a"b', 2.0)),
        ({"escape-character": "\\\\"}, '1,"a\\"b",2', (1, 'a"b', 2.0)),
        ({"escape-character": "\\"}, "1,a\\,\\n\\\\b,2", (1, "a,\n\\b", 2.0)),
        ({"escape-character": '"'}, '1,"a""b",2', (1, 'a"b', 2.0)),
        ({"quote-character": "\\'"}, "1,'a,b',2", (1, "a,b", 2.0)),
        ({"null-literal": "n/a"}, "n/a,n/a,n/a", (None, None, None)),
    ],
)
def test_options_say_how_a_line_is_written(options: dict[str, str], line: str, row: tuple[object, ...]):
    source = table({"id": BIGINT, "who": STRING, "amount": DOUBLE}, "csv", options)
    assert rows(source, line) == [row]


def test_comments_are_passed_over_where_they_are_allowed():
    source = table({"id": BIGINT, "who": STRING}, "csv", {"allow-comments": "true"})
    assert rows(source, "# id, who", "1,ann") == [(1, "ann")]
    assert dead(source, "# id, who", "1,ann") == []


def test_only_the_columns_that_are_read_are_cast():
    source = table({"id": BIGINT, "who": STRING, "amount": DOUBLE}, "csv")
    assert shown(decode(source, records("x,ann,y"), columns=[1]).changes) == ["ann"]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ((1, "ann", 2.5), "1,ann,2.5"),
        ((1, "a,b", 2.0), '1,"a,b",2.0'),
        ((1, 'say "hi"', None), '1,"say ""hi""",'),
        ((1, "two\nlines", 2.0), '1,"two\nlines",2.0'),
        ((None, None, None), ",,"),
    ],
)
def test_a_row_is_written_as_a_line_that_is_read_again(row: tuple[object, ...], line: str):
    written = values(encode(PAYMENTS, (1, row)))
    assert written == [line]
    again = rows(PAYMENTS, line)[0]
    assert again == tuple("" if v is None and i == 1 else v for i, v in enumerate(row))


def cells_by_hand(line: str, options: CsvOptions) -> list[str] | None:
    """The cells of a line, character by character; None if it has none."""
    line, cells, at = line.rstrip("\r\n"), [""], 0
    while True:
        quoted = bool(options.quote) and line[at : at + 1] == options.quote
        at += quoted
        while at < len(line):
            character = line[at]
            if quoted and character == options.quote:
                if line[at + 1 : at + 2] != options.quote:
                    break
                at += 1
            elif character == options.escape:
                at += 1
                if at == len(line):
                    return None
                character = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}.get(line[at], line[at])
            elif not quoted and character == options.delimiter:
                break
            elif not quoted and character in "\r\n":
                return None
            cells[-1] += character
            at += 1
        if quoted:
            if at == len(line):
                return None
            at += 1
            while at < len(line) and line[at] <= " " and line[at] not in ("\r", "\n", options.delimiter):
                at += 1
        if at == len(line):
            return cells
        if line[at] != options.delimiter:
            return None
        at += 1
        cells.append("")


@pytest.mark.parametrize(
    "options",
    [
        CsvOptions(),
        CsvOptions(escape="\\"),
        CsvOptions(quote=""),
        CsvOptions(quote="", escape="n"),
        CsvOptions(delimiter="\t", quote="^", escape="]"),
        CsvOptions(delimiter=" ", quote="-"),
    ],
)
def test_cells_are_distinguished_as_they_are_character_by_character(options: CsvOptions):
    rng, parser = random.Random(1), LineParser(options)
    for _ in range(5_000):
        marks = [m for m in (options.quote, options.delimiter, options.escape) if m]
        line = "".join(rng.choices([*marks, *marks, "a", "n", " ", "\t", "\n", "\r", "0"], k=rng.randrange(12)))
        try:
            found: list[str] | None = parser.cells(line)
        except MalformedLineError:
            found = None
        assert found == cells_by_hand(line, options), repr(line)


@pytest.mark.timeout(20)
def test_a_long_line_without_its_last_quote_is_given_up_at_once():
    assert dead(PAYMENTS, '1,"' + 'x""' * 500_000) == [(0, "bad-csv", "the quote of cell 2 is not closed")]


@pytest.mark.parametrize(
    ("options", "type_", "cell", "value"),
    [
        ({}, Array(STRING), "", []),
        ({}, Array(INT), " ", []),
        ({}, Array(STRING), "a", ["a"]),
        ({}, Array(STRING), "a;;b", ["a", "", "b"]),
        ({}, Array(STRING), ";", ["", ""]),
        ({}, Array(INT), " 1; 2", [1, 2]),
        ({"null-literal": "n/a"}, Array(INT), "1;n/a", [1, None]),
        ({"null-literal": "n/a"}, Array(STRING), "n/a", [None]),
        ({"null-literal": "n/a"}, Array(STRING), "", []),
    ],
)
def test_an_array_is_empty_where_its_cell_is_and_only_its_elements_may_be_null(options, type_, cell, value):
    source = table({"a": type_, "b": STRING}, "csv", options)
    assert rows(source, f"{cell},x") == [(value, "x")]


@pytest.mark.parametrize("cell", ["1;;2", "1;x", ";"])
def test_an_array_with_an_element_that_is_none_is_a_dead_letter(cell: str):
    source = table({"a": Array(INT), "b": STRING}, "csv")
    detail = f'column "a" is ARRAY<INT>, but the record has "{cell}"'
    assert dead(source, f"{cell},x") == [(0, "wrong-type", detail)]


@pytest.mark.parametrize(("null", "line"), [("", "1;;2,x"), ("n/a", "1;n/a;2,x")])
def test_a_null_in_an_array_is_written_as_any_other(null: str, line: str):
    sink = table({"a": Array(INT), "b": STRING}, "csv", {"null-literal": null} if null else {})
    assert values(encode(sink, (1, ([1, None, 2], "x")))) == [line]


def test_times_and_arrays_are_written_as_they_are_read():
    sink = table({"at": TimestampLtz(3), "day": DATE, "some": Array(INT)}, "csv")
    row = (datetime(2024, 2, 29, 12, 30, tzinfo=UTC).replace(tzinfo=None), date(2024, 2, 29), [1, 2])
    assert values(encode(sink, (1, row))) == ["2024-02-29 12:30:00Z,2024-02-29,1;2"]
