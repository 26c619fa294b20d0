"""Values of drivers as values of the declared types: exactly, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

import pytest

from service.databases.looked_up_table import ReadColumn
from service.databases.values import ValueUnreadable, read_row, reader
from service.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TINYINT,
    Array,
    DataType,
    Decimal,
    Text,
    Time,
    Timestamp,
    TimestampLtz,
)

OSLO = timezone(timedelta(hours=2))

READ = [
    (BIGINT, 5, 5),
    (BIGINT, Number("5.0"), 5),
    (TINYINT, -128, -128),
    (BOOLEAN, 1, True),
    (BOOLEAN, False, False),
    (DOUBLE, 5, 5.0),
    (DOUBLE, Number("0.5"), 0.5),
    (STRING, UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (Text(3), "abc", "abc"),
    (BYTES, memoryview(b"ab"), b"ab"),
    (Decimal(4, 2), 1.25, Number("1.25")),
    (Decimal(4, 2), "12.5", Number("12.50")),
    (DATE, "2024-02-29", date(2024, 2, 29)),
    (Time(0), "10:11:12.5", time(10, 11, 12)),
    (Timestamp(3), datetime(2024, 1, 1, 0, 0, 0, 123_456), datetime(2024, 1, 1, 0, 0, 0, 123_000)),
    (Timestamp(6), "2024-01-01 00:00:05.25", datetime(2024, 1, 1, 0, 0, 5, 250_000)),
    (TimestampLtz(3), datetime(2024, 1, 1, 2, tzinfo=OSLO), datetime(2024, 1, 1)),
    (TimestampLtz(3), "2024-01-01 02:00:00+02:00", datetime(2024, 1, 1)),
    (Array(INT), [1, None], [1, None]),
]

REFUSED = [
    (BIGINT, "5"),
    (BIGINT, True),
    (BIGINT, 5.0),
    (BIGINT, Number("5.5")),
    (INT, 2**31),
    (BOOLEAN, 2),
    (BOOLEAN, "true"),
    (DOUBLE, "0.5"),
    (STRING, 5),
    (STRING, b"ab"),
    (Text(3), "abcd"),
    (BYTES, "ab"),
    (Decimal(4, 2), Number("1.255")),
    (Decimal(4, 2), Number("123.45")),
    (Decimal(4, 2), "many"),
    (Decimal(4, 2), float("nan")),
    (DATE, datetime(2024, 1, 1)),
    (DATE, "1st of May"),
    (Timestamp(3), datetime(2024, 1, 1, tzinfo=UTC)),
    (TimestampLtz(3), datetime(2024, 1, 1)),
    (Array(INT), ["x"]),
    (Array(INT), "x"),
]


def read(kind: DataType, value: Any, *, nullable: bool = True) -> Any:
    return read_row([value], [ReadColumn("price", kind, nullable)], [reader(kind)])[0]


@pytest.mark.parametrize(("kind", "value", "expected"), READ)
def test_a_value_is_read_as_the_declared_type(kind: DataType, value: Any, expected: Any):
    assert read(kind, value) == expected
    assert type(read(kind, value)) is type(expected)
    assert read(kind, None) is None


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_a_value_that_would_lose_something_is_refused_with_its_column(kind: DataType, value: Any):
    with pytest.raises(ValueUnreadable, match='column "price" is declared'):
        read(kind, value)


def test_null_is_refused_where_the_column_is_declared_not_null():
    with pytest.raises(ValueUnreadable, match='column "price" is declared NOT NULL, and is NULL'):
        read(INT, None, nullable=False)


def test_a_long_value_is_shown_in_part():
    with pytest.raises(ValueUnreadable) as error:
        read(INT, "x" * 1000)
    assert len(str(error.value)) < 150
