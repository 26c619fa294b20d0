"""Dead letters that their topic would not take are cut, and say so."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from service.formats.contract import OUT
from service.formats.dead_letters import fitted

MOST = 10_000
REASON = {"key": "tailrace-reason", "value": b"bad-json"}


def record(value: bytes | None, key: bytes | None = None, own: int = 0) -> dict[str, Any]:
    headers = [{"key": "own", "value": b"h" * own}] if own else []
    return {"key": key, "value": value, "partition": None, "timestamp": None, "headers": [*headers, REASON]}


def cut(*records: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = fitted(pa.Table.from_pylist(list(records), schema=OUT), MOST).to_pylist()
    return found


def test_what_fits_is_left_as_it_is():
    records = [record(b"x" * 9_000), record(None, b"k"), record(b"", own=5_000)]
    assert cut(*records) == records


@pytest.mark.parametrize(
    ("large", "message"),
    [
        (record(b"x" * 50_000), b" of 50000 bytes"),
        (record(b"x" * MOST, b"k" * 100), b" of 10000 bytes"),
        (record(b"x" * 50_000, own=5_000), b" of 50000 bytes"),
        (record(b"x", b"k" * 50_000), b"without its key and its own headers"),
        (record(b"x" * 50_000, own=50_000), b"without its key and its own headers, "),
        (record(None, b"k" * 50_000), b"without its key and its own headers"),
    ],
)
def test_what_is_too_large_is_cut_and_says_so(large: dict[str, Any], message: bytes):
    small = record(b"small", b"k")
    first, found, last = cut(small, large, small)
    assert first == last == small
    size = len(found["key"] or b"") + len(found["value"] or b"")
    assert size + sum(len(h["key"]) + len(h["value"]) for h in found["headers"]) <= MOST
    headers = {h["key"]: h["value"] for h in found["headers"]}
    assert headers["tailrace-reason"] == b"bad-json"
    assert message in headers["tailrace-cut"]
    assert (large["value"] or b"").startswith(found["value"] or b"")
