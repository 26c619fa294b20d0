"""The commands `tailrace checkpoint save`, `list` and `inspect`, and `tailrace state`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from service.checkpoint.batch_log import ends, planned_at, ranges
from service.checkpoint.copying import copy, done_batches
from service.checkpoint.files import Files
from service.commands.checkpoints import REFUSALS, NoCheckpoint, jobs_at, load_settings, name_of, newest, one_at, opened
from service.exit_codes import FAILED, OK, WRONG
from service.inspection.kept_state import CheckpointState, TableFigures, kept_bytes
from service.plan.kept_tables import KeptOperator
from service.settings import Settings


def run(arguments: argparse.Namespace) -> int:
    """Do it; the answer is the exit code."""
    settings = load_settings()
    if settings is None:
        return WRONG
    try:
        DO[arguments.do](arguments, settings)
    except REFUSALS as error:
        print(error, file=sys.stderr)
        return FAILED
    return OK


def save(arguments: argparse.Namespace, settings: Settings) -> None:
    """Copy a checkpoint, or those of all jobs of a folder."""
    places = jobs_at(arguments.checkpoint, settings)
    for place in places:
        alone = place == arguments.checkpoint.rstrip("/")
        target = arguments.target.rstrip("/") if alone else f"{arguments.target.rstrip('/')}/{name_of(place)}"
        with opened(place, settings) as source, opened(target, settings) as made:
            copied = copy(source, made, arguments.batch)
        print(
            f"{name_of(place)}: batch {copied.batch} is saved in {target}: {copied.files} files, {_size(copied.bytes)}"
        )


def list_batches(arguments: argparse.Namespace, settings: Settings) -> None:
    """Print the batches that can be restored."""
    for place in jobs_at(arguments.checkpoint, settings):
        with opened(place, settings) as files:
            known = done_batches(files)
            stateful = bool(files.names("tailrace/versions"))
            for number in known:
                state = _size(kept_bytes(files, number)) if stateful else "no"
                print(f"{name_of(place)}: batch {number} of {_when(planned_at(files, number))}, {state} state")
                for topic, offsets in _offsets(files, number).items():
                    print(f"  {topic}: {offsets}")
            if not known:
                print(f"{name_of(place)}: no batch is done")


def inspect(arguments: argparse.Namespace, settings: Settings) -> None:
    """Print what each operator keeps."""
    for place in jobs_at(arguments.checkpoint, settings):
        with opened(place, settings) as files:
            state = CheckpointState(files, newest(files, arguments.batch))
            print(f"{name_of(place)}: after batch {state.batch}, {len(state.operators)} operators keep state")
            for operator in state.operators:
                print(f"  {operator.name} ({operator.short})")
                for each in state.figures(operator, count=not arguments.quick):
                    print(f"    {_words(each)}")


def show_state(arguments: argparse.Namespace, settings: Settings) -> None:
    """Print rows of an operator's state, or write them to a file."""
    with opened(one_at(arguments.checkpoint, settings), settings) as files:
        state = CheckpointState(files, newest(files, arguments.batch))
        if not arguments.operator:
            for each in state.operators:
                known = "; ".join(f"{name} ({', '.join(t.shown.values())})" for name, t in each.tables.items())
                print(f"{each.name} ({each.short}): {known}")
            return
        operator = state.operator(arguments.operator)
        tables = _tables(operator, arguments.table)
        if arguments.out:
            if len(tables) > 1:
                raise NoCheckpoint(
                    f"{operator.name} has several tables\n  hint:   pass --table with one of {', '.join(tables)}"
                )
            _write(state, operator, tables[0], arguments)
            return
        for name in tables:
            found = _found(state, operator, name, arguments.key)
            if len(tables) > 1:
                print(f"{name}:")
            if arguments.format == "json":
                _print_json(found, arguments.limit)
            else:
                _print(found, list(operator.tables[name].shown.values()), arguments.limit)


DO: Mapping[str, Callable[[argparse.Namespace, Settings], None]] = {
    "save": save,
    "list": list_batches,
    "inspect": inspect,
    "state": show_state,
}


def _tables(operator: KeptOperator, wanted: str) -> list[str]:
    if not wanted:
        return list(operator.tables)
    if wanted not in operator.tables:
        raise NoCheckpoint(f'{operator.name} has no table "{wanted}"\n  hint:   it has {", ".join(operator.tables)}')
    return [wanted]


def _found(state: CheckpointState, operator: KeptOperator, table: str, key: str) -> Iterator[pa.Table]:
    """The rows of a table, those of one key if one is given: a value, or `column=value` for each of several columns,
    between commas."""
    kept = operator.tables[table]
    wanted: dict[str, str] = {}
    for number, part in enumerate(key.split(",") if key else ()):
        name, given, value = part.partition("=")
        if not given:
            of_key = kept.key or tuple(kept.shown.values())
            name, value = of_key[min(number, len(of_key) - 1)], part
        if name not in kept.shown.values():
            raise NoCheckpoint(
                f'table {table} has no column "{name}"\n  hint:   it has {", ".join(kept.shown.values())}'
            )
        wanted[name] = value
    for rows in state.rows(operator, table):
        for name, value in wanted.items():
            rows = rows.filter(_is(rows.column(name), value))
        if rows.num_rows:
            yield rows


def _is(column: pa.ChunkedArray, text: str) -> pa.ChunkedArray:
    """Where a column has the value that is written so."""
    try:
        value = pa.scalar(text).cast(column.type)
    except pa.ArrowException:
        raise NoCheckpoint(f'"{text}" is not a value of type {column.type}') from None
    return pc.fill_null(pc.equal(column, value), False)


def _write(state: CheckpointState, operator: KeptOperator, table: str, arguments: argparse.Namespace) -> None:
    spec = operator.tables[table]
    schema = pa.schema([pa.field(shown, spec.spec.schema.field(name).type) for name, shown in spec.shown.items()])
    path, written = Path(arguments.out), 0
    with closing(_WRITERS[arguments.format](path, schema)) as file:
        for rows in _found(state, operator, table, arguments.key):
            file.write_table(rows)
            written += rows.num_rows
    print(f"{written:,} rows of {operator.name}, table {table}, are in {path}")


class _TableFile(Protocol):
    def write_table(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class _JsonFile:
    """A JSON object a row."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w")

    def write_table(self, table: pa.Table) -> None:
        self._file.writelines(f"{json.dumps(row, default=str)}\n" for row in table.to_pylist())

    def close(self) -> None:
        self._file.close()


_WRITERS: Mapping[str, Callable[[Path, pa.Schema], _TableFile]] = {
    "arrow": lambda path, schema: pa.ipc.new_file(str(path), schema),
    "parquet": lambda path, schema: parquet.ParquetWriter(str(path), schema),
    "json": _JsonFile,
}


def _print_json(found: Iterator[pa.Table], limit: int) -> None:
    for row in _first(found, limit):
        print(json.dumps(row, default=str))


def _print(found: Iterator[pa.Table], columns: Sequence[str], limit: int) -> None:
    rows = [[_text(row[name]) for name in columns] for row in _first(found, limit)]
    widths = [max(map(len, each)) for each in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    print("\n".join(f"| {' | '.join(c.ljust(w) for c, w in zip(line, widths, strict=True))} |" for line in lines))
    if len(rows) == limit:
        print(f"the first {limit} rows; --limit asks for more, --out writes all of them")


def _first(found: Iterator[pa.Table], limit: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for table in found:
        rows += table.slice(0, limit - len(rows)).to_pylist()
        if len(rows) >= limit:
            break
    return rows


def _text(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _words(table: TableFigures) -> str:
    parts = [f"table {table.name}: {table.rows:,} rows, {_size(table.bytes)}"]
    if table.skew is not None:
        parts.append(f"the fullest hundredth of the slots holds {table.skew:.1f} times its share")
    if table.largest and table.largest[0][1] > 1:
        parts.append("most rows: " + "; ".join(f"{key} ({rows:,})" for key, rows in table.largest))
    return "; ".join(parts)


def _offsets(files: Files, number: int) -> dict[str, str]:
    """Where a batch ends, by topic."""
    found: dict[str, list[str]] = {}
    for each in chain.from_iterable(ranges(None, end) for end in ends(files, number)):
        found.setdefault(each.topic, []).append(f"{each.partition} before {each.end:,}")
    return {topic: "partition " + ", ".join(dict.fromkeys(places)) for topic, places in found.items()}


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _size(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
