"""What pyarrow looks for when it is given Python values: each search of the path for what is missing costs 80 us."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pytest

VALUES = [True, 1, 1.5, "text", b"bytes", Decimal("1.50"), date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), None]


class Searches(MetaPathFinder):
    """Notes each module that is searched for, and finds none."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Note the name."""
        self.names.append(fullname)
        return None


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    """The modules that are searched for from now on."""
    finder = Searches()
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    return finder


def _convert() -> None:
    for value in VALUES:
        pa.scalar(value).as_py()
        pa.array([value, None])
        pc.is_in(pa.array([value]), pa.array([value]))
    pc.equal(pa.array([1, 2]), 1)
    pc.fill_null(pa.array([1, None]), 0)
    pa.array([{"a": [1]}, None]).to_pylist()


def test_values_are_converted_without_a_search_for_a_package_that_is_missing(searches: Searches) -> None:
    _convert()  # what is there is imported once, and pandas is searched for once
    searches.names.clear()
    _convert()
    assert not searches.names
