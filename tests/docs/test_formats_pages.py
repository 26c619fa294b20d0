"""What the documents say of records that are refused, tried on such records."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from service.formats.dead_letters import NOT_COMPUTED, NOT_ENCODABLE, REASONS
from service.plan.types import BIGINT, BOOLEAN, INT, DataType, Decimal, Timestamp
from service.sql.tables.metadata_columns import METADATA_OF_FORMATS
from tests.docs.pages import ROOT, table_rows, text_of
from tests.formats.wire import decode, records, table

TYPES: dict[str, DataType] = {
    "INT": INT,
    "BIGINT": BIGINT,
    "BOOLEAN": BOOLEAN,
    "DECIMAL(5, 2)": Decimal(5, 2),
    "TIMESTAMP": Timestamp(3),
    "any": INT,
}


def refused() -> Iterator[tuple[str, str, str]]:
    """Value or record, type and reason, from the table of differences."""
    page = text_of(ROOT / "docs" / "differences.md")
    (line,) = re.findall("^Flink alters some values .*$", page, re.MULTILINE)
    rows = table_rows(page, line)
    for values, types, _, reason in rows:
        for value in re.findall(r"`([^`]*)`", values):
            for type_ in re.split(r", (?![^(]*\))", types):
                yield value, type_, reason.strip("`")


@pytest.mark.parametrize(("value", "type_", "reason"), tuple(refused()))
def test_a_record_that_flink_would_alter_is_a_dead_letter(value: str, type_: str, reason: str):
    record = value if value.startswith(("{", "[")) else f'{{"a":{value}}}'
    dead = decode(table({"a": TYPES[type_]}), records(record)).dead
    assert dead["reason"].to_pylist() == [reason]


def test_the_reasons_of_the_page_are_those_that_there_are():
    page = text_of(ROOT / "docs" / "operations.md")
    (line,) = re.findall("^.* `tailrace-offset` .*$", page, re.MULTILINE)
    rows = table_rows(page, line)
    assert sorted(reason.strip("`") for reason, _ in rows) == sorted(set(REASONS) - {NOT_COMPUTED, NOT_ENCODABLE})


def test_the_metadata_of_the_page_are_those_that_a_table_may_declare():
    found: dict[str, list[str]] = {}
    form = ""
    for word in re.findall(r"`([a-z]+-json|value\.[a-z.-]+)`", text_of(ROOT / "docs" / "formats.md")):
        if word.startswith("value."):
            found.setdefault(form, []).append(word)
        else:
            form = word
    assert found == {form: list(keys) for form, keys in METADATA_OF_FORMATS.items()}
