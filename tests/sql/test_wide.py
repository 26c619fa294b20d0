"""Files with thousands of columns, and deep values, are read in steps that grow with their length."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from service.sql.pipeline import read

SOURCE = "CREATE TABLE t ({columns}) WITH ('connector' = 'datagen'); EXPLAIN SELECT {items} FROM t;"


def columns(count: int) -> str:
    names = [f"c{i}" for i in range(count)]
    return SOURCE.format(columns=", ".join(f"{n} INT" for n in names), items=", ".join(f"{n} + 1" for n in names))


def aggregates(count: int) -> str:
    return SOURCE.format(columns="k INT, v INT", items=", ".join(f"SUM(v + {i})" for i in range(count)))


def rows(count: int) -> str:
    return SOURCE.format(columns="a INT", items="ROW(" * count + "a" + ")" * count)


def totals(count: int) -> str:
    return SOURCE.format(columns="a INT", items=" + ".join(["a"] * count))


def texts(count: int) -> str:
    return SOURCE.format(columns="b STRING", items=" || '-' || ".join(["b"] * count))


def calls(text: str) -> int:
    """How many functions are called to read `text`, on this thread."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        read.__wrapped__(text)  # type: ignore[attr-defined]
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(("make", "size"), [(columns, 150), (aggregates, 60), (rows, 7), (totals, 60), (texts, 30)])
def test_twice_the_length_takes_twice_the_steps(make, size):
    calls(make(size))  # what is made once is made
    assert calls(make(2 * size)) < 2.3 * calls(make(size))
