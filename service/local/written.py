"""The Kafka records that a sink writes, as lines of a file: `VALUE`, or `KEY => VALUE`, as in input files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from operators.sql import Sql
from service.formats.registry import encoder
from service.local import text_table
from service.local.inputs import RECORDS
from service.local.text_formats import in_text
from service.plan.program import Output, Program


def wanted(folder: Path, program: Program) -> set[str]:
    """Return the tables whose records are in a case."""
    return {o.table.name for o in program.outputs if (folder / f"{o.table.name}{RECORDS}").exists()}


def lines(program: Program, output: Output, changes: pa.Table, sql: Sql) -> list[str]:
    """Return the records of one batch."""
    records = encoder(in_text(output.table), output.columns, program.name, output.key).encode(changes, sql)
    return [_line(key, value) for key, value in zip(*(records[n].to_pylist() for n in ("key", "value")), strict=True)]


def text(batches: list[list[str]]) -> str:
    """Return the text of a file."""
    return "\n---\n".join("\n".join(batch) for batch in batches) + "\n"


def differences(path: Path, came: list[list[str]]) -> list[str]:
    """Return what differs, batch by batch; the order of records within a batch does not count."""
    expected = [[line.text for line in batch.lines] for batch in text_table.read_batches(path)]
    found: list[str] = []
    for number in range(max(len(expected), len(came))):
        before = sorted(expected[number]) if number < len(expected) else []
        after = sorted(came[number]) if number < len(came) else []
        if before != after:
            found.append(f"{path.name}, batch {number + 1}:")
            found += [f"  - {line}  expected, but missing" for line in before if line not in after]
            found += [f"  + {line}  not expected" for line in after if line not in before]
    return found


def _line(key: bytes | None, value: bytes | None) -> str:
    after = "" if value is None else value.decode()
    return after if key is None and value is not None else f"{(key or b'').decode()} => {after}".strip()
