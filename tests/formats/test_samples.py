"""Dead letters and late rows in short."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators.sql import Sql
from service.formats.dead_letters import dead_records, row_records
from service.formats.samples import LONGEST, samples


def dead(*values: bytes | None, headers: list[dict[str, object]] | None = None, detail: str = "why") -> pa.Table:
    """Records that could not be decoded, from offset 7 on."""
    rows = len(values)
    return dead_records(
        pa.table(
            {
                "value": pa.array(values, pa.binary()),
                "headers": pa.array(
                    [headers] * rows, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
                ),
                "reason": ["bad-json"] * rows,
                "detail": [detail] * rows,
                "topic": ["orders"] * rows,
                "partition": pa.array([3] * rows, pa.int32()),
                "offset": pa.array(range(7, 7 + rows), pa.int64()),
            }
        )
    )


def test_a_record_says_why_and_whence():
    first, second = samples(dead(b"{", b"["), late=False)
    assert first == {
        "late": False,
        "reason": "bad-json",
        "detail": "why",
        "origin": "orders/3, offset 7",
        "value": "{",
        "whole": True,
    }
    assert second["origin"] == "orders/3, offset 8"


def test_a_row_names_its_operator_and_shows_its_columns():
    rows = pa.table({"c0": ["ann"], "c1": pa.array([5], pa.int64()), "_weight": pa.array([1], pa.int64())})
    (sample,) = samples(row_records(rows, ["who", "n"], "group_by_1", "late", Sql()), late=True)
    assert (sample["late"], sample["reason"], sample["origin"]) == (True, "late", "group_by_1")
    assert sample["value"] == '{"who":"ann","n":5,"_weight":1}'


@pytest.mark.parametrize(
    ("value", "shown", "whole"),
    [
        (b"a" * LONGEST, "a" * LONGEST, True),
        (b"a" * (LONGEST + 1), "a" * LONGEST, False),
        ("ä".encode() * LONGEST, "ä" * LONGEST, True),
        ("\N{GRINNING FACE}".encode() * 5_000, "\N{GRINNING FACE}" * LONGEST, False),
        (b"\xff{", "\\xff{", True),
        (b"", "", True),
        (None, "", True),
    ],
    ids=["as long as may be", "longer", "of two bytes each", "of four bytes each", "no UTF-8", "empty", "none"],
)
def test_a_value_is_cut_and_says_so(value: bytes | None, shown: str, whole: bool):
    (sample,) = samples(dead(value), late=False)
    assert (sample["value"], sample["whole"]) == (shown, whole)


def test_headers_that_the_record_had_before_do_not_speak_for_it():
    own: list[dict[str, object]] = [{"key": "reason", "value": b"forged"}, {"key": "operator", "value": None}]
    (sample,) = samples(dead(b"{", headers=own), late=False)
    assert (sample["reason"], sample["origin"]) == ("bad-json", "orders/3, offset 7")


def test_a_long_detail_is_cut():
    (sample,) = samples(dead(b"{", detail="x" * 5_000), late=False)
    assert sample["detail"] == "x" * LONGEST
