"""A few dead letters and late rows in short, for people to look at: they travel with the figures of a batch."""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa

from service.formats.dead_letters import HEADER

LONGEST = 300
"""Characters that are shown of a value, and of a reason."""


class Sample(TypedDict):
    """`origin` is the place of a record ('orders/3, offset 17') or the operator that refused a row; `value` begins as
    the record does, `whole` says that it also ends so."""

    late: bool
    reason: str
    detail: str
    origin: str
    value: str
    whole: bool


def samples(records: pa.Table, *, late: bool) -> list[Sample]:
    """Return samples of records that `formats.dead_letters` made; the caller cuts the table to as many as it wants."""
    return [
        _sample(value or b"", {h["key"].removeprefix(HEADER): h["value"] for h in headers if _ours(h["key"])}, late)
        for value, headers in zip(records["value"].to_pylist(), records["headers"].to_pylist(), strict=True)
    ]


def _ours(header: str) -> bool:
    return header.startswith(HEADER)


def _sample(value: bytes, headers: dict[str, bytes], late: bool) -> Sample:
    change_rows = {name: _text(text or b"", LONGEST) for name, text in headers.items()}
    if "offset" in change_rows:
        origin = f"{change_rows['topic']}/{change_rows['partition']}, offset {change_rows['offset']}"
    else:
        origin = change_rows.get("operator", "")
    # A character has at most four bytes: this is enough to see whether the text goes on.
    text = _text(value[: 4 * LONGEST + 4], LONGEST + 1)
    return Sample(
        late=late,
        reason=change_rows["reason"],
        detail=change_rows.get("detail", ""),
        origin=origin,
        value=text[:LONGEST],
        whole=len(text) <= LONGEST,
    )


def _text(raw: bytes, longest: int) -> str:
    """Bytes as text; those that are no UTF-8 as \\xff."""
    return raw.decode(errors="backslashreplace")[:longest]
