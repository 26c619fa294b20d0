"""The golden pipelines as streams that Flink can be played too: their own statements, over the rows that we decode."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bench.compare.play import Arrival, Stream, Value
from operators.names import WEIGHT
from operators.sql import Sql
from service.formats.registry import decoder
from service.local import cells
from service.local.feed import Feed
from service.local.inputs import ROWS, read
from service.local.prepared import PreparedRows
from service.local.text_formats import in_text
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Scan
from service.plan.table import ColumnKind, Table
from service.plan.types import BYTES, Array, Map, Row
from service.plan.walk import in_order
from service.sql.pipeline import load

FOLDER = Path(__file__).parents[2] / "tests" / "pipelines"

_PART = re.compile(r"(?:[^;']|'[^']*')+")
"""A statement: what stands between semicolons outside of texts."""

_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_TABLE = re.compile(r"CREATE\s+TABLE\s+(\w+)\s*(\(.*\))\s*WITH\s*\(.*\)$", re.DOTALL | re.IGNORECASE)
_INSERT = re.compile(r"INSERT\s+INTO\s+(\w+)(?:\s*\([^)]*\))?\s+(SELECT.*|WITH.*|VALUES.*)$", re.DOTALL | re.IGNORECASE)
_VIEW = re.compile(r"CREATE\s+(TEMPORARY\s+)?VIEW", re.IGNORECASE)
_SET = re.compile(r"SET\s+'([^']+)'\s*=\s*'([^']*)'$", re.IGNORECASE)
_METADATA = re.compile(r"\s+METADATA(\s+FROM\s+'[^']*')?(\s+VIRTUAL)?", re.IGNORECASE)
_HINT = re.compile(r"/\*\+\s*(LEADING|SKEW)\([^)]*\)\s*\*/", re.IGNORECASE)
"""Hints that Flink does not have, which change no answer."""

_BLOCK = re.compile(r"EXECUTE\s+STATEMENT\s+SET|\bBEGIN\b|\bEND$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden case: what we play, and for Flink its statements, its settings and a query for each sink."""

    stream: Stream
    statements: tuple[str, ...]
    settings: dict[str, str]
    queries: dict[str, str]


def golden() -> Iterator[Golden]:
    """Every case of tests/pipelines whose rows can be played to Flink."""
    for folder in sorted(FOLDER.iterdir()):
        if (folder / "pipeline.sql").exists() and (case := of_folder(folder)) is not None:
            yield case


def of_folder(folder: Path) -> Golden | None:
    """Return the case of a folder, None if Flink cannot be played its rows."""
    text = (folder / "pipeline.sql").read_text()
    sql = Sql()
    jobs = load(folder / "pipeline.sql", os.environ).jobs
    programs = [compile_job(job) for job in jobs]
    if any(operator.lookup is not None for program in programs for operator in program.operators):
        return None  # Flink asks a database, and does not wait with a batch until its table has changed
    # As they are declared: a program reads of some tables the place of a record as well.
    declared = {node.table.name: node.table for job in jobs for node in in_order(job.sinks) if isinstance(node, Scan)}
    read_ones = {source.table.name: source.table for program in programs for source in program.sources}
    sources = {name: in_text(declared.get(name, table)) for name, table in read_ones.items()}
    if not all(_played(table) for table in sources.values()):
        return None
    statements: list[str] = []
    queries: dict[str, str] = {}
    settings: dict[str, str] = {}
    for statement in _statements(text):
        if (table := _TABLE.fullmatch(statement)) and table[1] in sources:
            columns = _METADATA.sub("", table[2])
            statements.append(f"CREATE TABLE {table[1]} {columns} WITH ({_replay(sources[table[1]])})")
        elif _VIEW.match(statement):
            statements.append(statement)
        elif insert := _INSERT.fullmatch(statement):
            queries[insert[1]] = " UNION ALL ".join(filter(None, (queries.get(insert[1]), insert[2])))
        elif option := _SET.fullmatch(statement):
            settings[option[1]] = option[2]
    stream = Stream(
        name=folder.name,
        text=text,
        heads={name: tuple(table.columns[c].name for c in _stored(table)) for name, table in sources.items()},
        arrivals=tuple(_arrivals(folder, list(sources.values()), sql)),
        append_only=frozenset(name for name, table in sources.items() if _mode(table) == "append"),
    )
    return Golden(stream, tuple(statements), settings, queries)


def _statements(text: str) -> list[str]:
    parts = (_BLOCK.sub("", part.strip()).strip() for part in _PART.findall(_HINT.sub("", _COMMENT.sub("", text))))
    return [part for part in parts if part]


def _mode(table: Table) -> str:
    if table.connector.kind == "upsert-kafka":
        return "upsert"
    kind = table.connector.value_format.kind if table.connector.value_format else ""
    return "append" if kind in ("json", "csv", "raw", "") else "retract"


def _played(table: Table) -> bool:
    """Whether our source of rows in Flink knows the types of its columns."""
    types = (table.columns[c].type for c in _stored(table))
    return not any(isinstance(type_, Array | Map | Row) or type_ == BYTES for type_ in types)


def _replay(table: Table) -> str:
    return f"'connector' = 'replay', 'mode' = '{_mode(table)}'"


def _stored(table: Table) -> list[int]:
    return [i for i, column in enumerate(table.columns) if column.kind is not ColumnKind.COMPUTED]


def _arrivals(folder: Path, tables: list[Table], sql: Sql) -> Iterator[Arrival]:
    """All decoded rows, batch by batch, in each batch table by table."""
    readers = []
    for table in tables:
        given = read(folder, table)
        columns = tuple(_stored(table))
        prepared = given.path.suffix == ROWS
        reader = PreparedRows(table, columns, given, sql) if prepared else decoder(table, columns)
        readers.append((table, Feed(table, given), reader))
    for batch in range(max(len(feed.input.arrivals) for _, feed, _ in readers)):
        for table, feed, reader in readers:
            for records in feed.records(batch, 0):
                yield from _rows(table, reader.decode(records, sql).changes, sql)


def _rows(table: Table, changes: pa.Table, sql: Sql) -> Iterator[Arrival]:
    kinds = {1: "+I", -1: "-D"} if _mode(table) != "upsert" else {1: "+U", -1: "-D"}
    columns = [cells.render(changes.column(f"c{i}"), table.columns[c].type, sql) for i, c in enumerate(_stored(table))]
    for weight, *values in zip(changes[WEIGHT].to_pylist(), *columns, strict=True):
        yield table.name, kinds[weight], [_value(text) for text in values]


def _value(cell: str) -> Value:
    if cell == cells.NULL:
        return None
    return str(json.loads(cell)) if cell.startswith('"') else cell
