"""A stream of rows played to a pipeline in this process: each row is a batch of its own, and then the sources end."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operators.sql import Sql
from service.local.case import run_case
from service.local.changelog import applied
from service.sql.pipeline import read

NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][-+]?\d+)?")
INSTANT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)?(Z?)")

Value = str | int | float | bool | list[Any] | dict[str, Any] | None
Arrival = tuple[str, str, Sequence[Value]]
"""A table, a kind of change (+I, -U, +U, -D) and the values of the row, text, numbers or None."""
Rows = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Stream:
    """`text` is a whole pipeline; `heads` names the columns of the rows of each table that it reads."""

    name: str
    text: str
    heads: dict[str, tuple[str, ...]]
    arrivals: tuple[Arrival, ...]
    append_only: frozenset[str] = field(default_factory=frozenset)


def play(stream: Stream) -> dict[str, Rows]:
    """The rows that each table of the pipeline holds at the end, in one form for both sides."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for table in stream.heads:
            (folder / f"{table}.rows").write_text(_file(stream, table))
        outcome = run_case(folder, read(stream.text).jobs, Sql())
    return {table: canonical(applied(outcome.changes[table], output.key)) for table, output in outcome.tables.items()}


def canonical(rows: Sequence[Sequence[Value]]) -> Rows:
    """Rows in one order, with their values in one form: what is equal is written in the same way."""
    return sorted(tuple(_one_form(value) for value in row) for row in rows)


def _one_form(value: Value) -> str:
    """Numbers to twelve digits, since the last ones of a sum depend on its order; times without trailing zeros; arrays
    and maps, which Flink gives as such, as the JSON that they are here."""
    if value is None:
        return "NULL"
    text = str(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
    if text[:1] in ("[", "{"):
        return _nested(text)
    if NUMBER.fullmatch(text):
        return f"{float(text) + 0.0:.12g}" if not text.lstrip("-").isdigit() else str(int(text))
    instant = INSTANT.fullmatch(text)
    if instant:
        return instant[1] + (instant[2] or "").rstrip("0").rstrip(".") + instant[3]
    return {"True": "true", "False": "false"}.get(text, text)


def _nested(text: str) -> str:
    """An ARRAY, or a MAP or MULTISET, whose entries have no order in Flink; other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _file(stream: Stream, table: str) -> str:
    """The input file of a table: it has a section for every arrival, and the row in its own."""
    kinds = table not in stream.append_only
    head = (("",) if kinds else ()) + stream.heads[table]
    lines = [_line(head), _line(["---"] * len(head))]
    for number, (owner, kind, values) in enumerate(stream.arrivals):
        lines += ["---"] if number else []
        if owner == table:
            lines.append(_line(([kind] if kinds else []) + [_cell(value) for value in values]))
    return "\n".join([*lines, "---", "@ end"]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Value) -> str:
    """Text is quoted where it would be taken for something else."""
    if value is None:
        return "NULL"
    text = str(value) if isinstance(value, str) else str(value).lower()
    if text != text.strip() or text in ("", "NULL") or text.startswith(('"', "x'")):
        text = json.dumps(text, ensure_ascii=False)
    return text.replace("|", "\\|")
