"""A golden case: a folder with a pipeline, its input and its expected results. It runs in this process, without a
JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import Decoder
from service.formats.registry import decoder
from service.local import changelog, written
from service.local.changelog import Change
from service.local.databases import CaseDatabases, databases
from service.local.expected import Section, Sections, merged
from service.local.feed import Feed
from service.local.inputs import ROWS, clock, read
from service.local.prepared import PreparedRows
from service.local.runner import BatchOutput, LocalRunner
from service.local.text_formats import in_text
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Job
from service.plan.program import Output, Program
from service.plan.table import Table
from service.runtime.shard_operators import Ask
from service.runtime.watermarks import Tick, channel_name

START = 1_704_067_200_000
"""The default wall clock of the first batch: 2024-01-01 00:00:00 UTC."""

STEP = 1_000
"""The default milliseconds between two batches."""

Runner = Callable[[Program, Mapping[int, Decoder], int, Sql, Ask], LocalRunner]
"""Makes the runner of a job from the program, the decoders of its sources, the most shards, and the function that
answers lookups."""

LATE = "late.changes"
DEAD = "dead.changes"


@dataclass(slots=True)
class Outcome:
    """The results of a case: by sink the changes of each batch, and by batch the late and dead rows. `titles` are those
    that tables of `late.changes` and `dead.changes` could have."""

    tables: dict[str, Output] = field(default_factory=dict)
    changes: dict[str, list[list[Change]]] = field(default_factory=dict)
    records: dict[str, list[list[str]]] = field(default_factory=dict)
    late: list[list[Section]] = field(default_factory=list)
    dead: list[list[Section]] = field(default_factory=list)
    titles: dict[str, set[str]] = field(default_factory=lambda: {LATE: set(), DEAD: set()})

    def files(self) -> dict[str, list[Sections]]:
        """Return the expectation files with these results, by name."""
        found: dict[str, list[Sections]] = {}
        for name, output in self.tables.items():
            head = changelog.names(output)
            batches = self.changes[name]
            found[f"{name}.changes"] = [
                (Section("", ("", *head), tuple((kind, *row) for kind, row in batch)),) for batch in batches
            ]
            if not output.append:
                found[f"{name}.result"] = [(Section("", head, tuple(changelog.applied(batches, output.key))),)]
        for name, sections in ((LATE, self.late), (DEAD, self.dead)):
            if any(sections):
                found[name] = [merged(s) for s in sections]
        return found


def run_case(folder: Path, jobs: Iterable[Job], sql: Sql, shards: int = 2, runner: Runner = LocalRunner) -> Outcome:
    """Run all jobs of a case over its input files."""
    outcome = Outcome()
    for job in jobs:
        whole = (folder / LATE).exists()
        part = _run_job(folder, compile_job(job, late_rows=whole), sql, shards, runner)
        if any(part.late) and not whole:
            # Late rows were only counted: run again, and store each of them.
            part = _run_job(folder, compile_job(job, late_rows=True), sql, shards, runner)
        _add(outcome, part)
    return outcome


def _run_job(folder: Path, program: Program, sql: Sql, shards: int, runner: Runner) -> Outcome:
    with databases(folder, program, sql) as looked_up:
        return _run_beside(folder, program, looked_up, sql, shards, runner)


def _run_beside(
    folder: Path, program: Program, looked_up: CaseDatabases, sql: Sql, shards: int, make: Runner
) -> Outcome:
    inputs = {s.id: read(folder, s.table) for s in program.sources}
    feeds = {s.id: Feed(s.table, inputs[s.id]) for s in program.sources}
    decoders: dict[int, Decoder] = {
        s.id: PreparedRows(s.table, s.columns, inputs[s.id], sql)
        if inputs[s.id].path.suffix == ROWS
        else decoder(in_text(s.table), s.columns)
        for s in program.sources
    }
    channels = {i: tuple(channel_name(i, feeds[i].topic, p) for p in each.partitions) for i, each in inputs.items()}
    runner = make(program, decoders, shards, sql, looked_up.ask)
    outcome = Outcome()
    for titles in outcome.titles.values():
        titles.update(operator.name for operator in program.operators)
    outcome.titles[DEAD].update(_title(source.table) for source in program.sources)
    shown = written.wanted(folder, program)
    times = clock([*inputs.values(), *looked_up.inputs], START, STEP)
    ended: set[int] = set()
    for batch, now in enumerate(times):
        last = batch == len(times) - 1
        for source in program.sources:
            arrivals = inputs[source.id].arrivals
            says_end = batch < len(arrivals) and arrivals[batch].ended
            if says_end or (last and source.table.connector.bounded.mode != "unbounded"):
                ended.add(source.id)
        records = {i: feed.records(batch, now) for i, feed in feeds.items()}
        looked_up.begin(batch, now)
        answer = runner.batch(records, Tick(channels, tuple(sorted(ended))), now)
        _note(outcome, program, answer, shown, sql)
    return outcome


def _note(outcome: Outcome, program: Program, answer: BatchOutput, shown: set[str], sql: Sql) -> None:
    by_table: dict[str, list[Change]] = {}
    records: dict[str, list[str]] = {name: [] for name in shown}
    for output in program.outputs:
        name = output.table.name
        outcome.tables.setdefault(name, output)
        table = answer.outputs.get(output.id)
        by_table.setdefault(name, []).extend(changelog.changes(output, table, sql) if table is not None else [])
        if name in shown and table is not None:
            records[name] += written.lines(program, output, table, sql)
    for name, found in by_table.items():
        outcome.changes.setdefault(name, []).append(found)
    for name, lines in records.items():
        outcome.records.setdefault(name, []).append(lines)
    operators = {o.id: o for o in program.operators}
    late: list[Section] = []
    dead: list[Section] = []
    for source in program.sources:
        if source.id in answer.dead_records:
            dead.append(_dead_records(source.table, answer.dead_records[source.id]))
    for identifier, tables in answer.dead.items():
        dead += [_shown(operators[identifier].name, operators[identifier].ports, table, sql) for table in tables]
    for identifier, tables in answer.late.items():
        late += [_shown(operators[identifier].name, operators[identifier].ports, table, sql) for table in tables]
    seen = {s.title for s in late}
    for operator in program.operators:
        count = int(answer.metrics.counts.get(f'late_records_total{{operator="{operator.name}"}}', 0))
        if count and operator.name not in seen:
            late.append(Section(operator.name, ("late rows",), ((str(count),),)))
    outcome.late.append(late)
    outcome.dead.append(dead)


def _shown(title: str, ports: Sequence[Sequence[str]], table: pa.Table, sql: Sql) -> Section:
    """Rows of an operator's input, under the names of the port that has as many columns."""
    visible = [n for n in table.column_names if not n.startswith("_")]
    head = next((tuple(p) for p in ports if len(p) == len(visible)), tuple(visible))
    columns = [*visible, *(["_reason"] if "_reason" in table.column_names else [])]
    casts = ", ".join(f"coalesce(CAST({c} AS VARCHAR), 'NULL')" for c in columns)
    rows = sql(f"SELECT {casts} FROM shown ORDER BY ALL", {"shown": table}) if columns else table
    texts = tuple(zip(*(rows.column(i).to_pylist() for i in range(len(columns))), strict=True))
    return Section(title, (*head, *(["reason"] if len(columns) > len(visible) else [])), texts)


def _dead_records(table: Table, records: pa.Table) -> Section:
    head = ("reason", "detail", "partition", "offset", "value")
    rows = (
        (r["reason"], r["detail"], str(r["partition"]), str(r["offset"]), _text(r["value"]))
        for r in records.select(list(head)).to_pylist()
    )
    return Section(_title(table), head, tuple(rows))


def _title(table: Table) -> str:
    """The title of a table's records that could not be decoded."""
    return f"table {table.name}"


def _text(value: bytes | None) -> str:
    if value is None:
        return "NULL"
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"hex {value.hex()}"


def _add(outcome: Outcome, part: Outcome) -> None:
    outcome.tables.update(part.tables)
    outcome.records.update(part.records)
    for name, titles in part.titles.items():
        outcome.titles[name] |= titles
    for name, batches in part.changes.items():
        known = outcome.changes.setdefault(name, [[] for _ in batches])
        for number, batch in enumerate(batches):
            if number == len(known):
                known.append([])
            known[number].extend(batch)
    for mine, theirs in ((outcome.late, part.late), (outcome.dead, part.dead)):
        for number, sections in enumerate(theirs):
            if number == len(mine):
                mine.append([])
            mine[number].extend(sections)
