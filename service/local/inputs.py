"""The input files of a golden case: what arrives in each batch, in which Kafka partition, at which wall-clock time.

`orders.rows` holds rows of the table as they are after decoding; `orders.records` holds Kafka records, one a line, that
go through the table's real format. In both, a line of dashes ends a batch, and a line that starts with `@` says what
holds from there on:

    @ 2024-01-01 00:00:05     the wall clock (UTC) of this batch
    @ partition 1             the Kafka partition of what follows
    @ end                     the source ends with this batch
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from service.formats import datagen
from service.local import text_table
from service.local.errors import CaseError
from service.local.text_table import Line
from service.plan.table import Table

ROWS = ".rows"
RECORDS = ".records"


@dataclass(slots=True)
class Arrival:
    """The part of one file in one batch: lines by partition, and what its `@` lines say."""

    now: int | None = None
    ended: bool = False
    partitions: dict[int, list[Line]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputRows:
    """An input file: its arrivals, batch by batch. The head of a `.rows` file is separate from the rows."""

    path: Path
    arrivals: tuple[Arrival, ...]
    head: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[int, ...]:
        """All Kafka partitions in the file."""
        return tuple(sorted({0, *(p for a in self.arrivals for p in a.partitions)}))

    @property
    def lines(self) -> list[Line]:
        """All rows or records, in the order of the file."""
        return sorted(line for a in self.arrivals for part in a.partitions.values() for line in part)


def read(folder: Path, table: Table) -> InputRows:
    """Return the input file of a table. Raises CaseError if there is none, or two."""
    found = [p for p in (folder / f"{table.name}{e}" for e in (ROWS, RECORDS)) if p.exists()]
    if not found and table.connector.kind == "datagen" and (count := datagen.rows_in_all(table)) is not None:
        return _made(folder, table, count)
    if len(found) != 1:
        wanted = f"{table.name}{ROWS} or {table.name}{RECORDS}"
        raise CaseError(
            f'{folder}: table "{table.name}" is read, so there must be {wanted}'
            + ("; there are both" if found else "; there is neither")
        )
    arrivals = _arrivals(found[0])
    if found[0].suffix == RECORDS:
        return InputRows(found[0], arrivals)
    return _with_head(found[0], arrivals)


def _made(folder: Path, table: Table, count: int) -> InputRows:
    """The rows of a bounded 'datagen' table, or of VALUES: all of them arrive in the first batch."""
    lines = [Line(number, "") for number in range(1, count + 1)]
    return InputRows(folder / f"{table.name}{RECORDS}", (Arrival(ended=True, partitions={0: lines}),))


def clock(inputs: Sequence[InputRows], start: int, step: int) -> list[int]:
    """Return the wall clock of each batch, in ms: as in the files, else `step` after the previous batch."""
    times: list[int] = []
    for batch in range(max((len(i.arrivals) for i in inputs), default=0)):
        given = [i.arrivals[batch].now for i in inputs if batch < len(i.arrivals)]
        known = [t for t in given if t is not None]
        times.append(max(known) if known else times[-1] + step if times else start)
    return times


def _arrivals(path: Path) -> tuple[Arrival, ...]:
    partition = 0
    arrivals = []
    for batch in text_table.read_batches(path):
        arrival = Arrival()
        for line in batch.lines:
            if line.text.startswith("@"):
                partition = _directive(path, line, arrival, partition)
            else:
                arrival.partitions.setdefault(partition, []).append(line)
        arrivals.append(arrival)
    return tuple(arrivals)


def _directive(path: Path, line: Line, arrival: Arrival, partition: int) -> int:
    """Read a line that starts with `@`. Return the partition of the lines after it."""
    directive = line.text[1:].strip()
    if directive == "end":
        arrival.ended = True
    elif directive.startswith("partition ") and directive[10:].strip().isdigit():
        partition = int(directive[10:])
        if partition >= 2**31:
            raise CaseError.at(path, line.number, f"`@ {directive}`: Kafka has no partition above {2**31 - 1}")
        arrival.partitions.setdefault(partition, [])
    else:
        try:
            arrival.now = int(datetime.fromisoformat(directive).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            known = "a time such as 2024-01-01 00:00:05, `partition N` or `end`"
            raise CaseError.at(path, line.number, f"`@ {directive}` is not {known}") from None
    return partition


def _with_head(path: Path, arrivals: tuple[Arrival, ...]) -> InputRows:
    """Separate the head, which may be repeated after a cut, and the rules under it from the rows."""
    lines = InputRows(path, arrivals).lines
    for line in lines:
        if not text_table.is_row(line):
            raise CaseError.at(path, line.number, "a row begins with a bar: | value | value |")
    head = text_table.cells(lines[0]) if lines else ()
    for arrival in arrivals:
        for partition, part in arrival.partitions.items():
            heads = [line for line, rule in pairwise(part) if text_table.is_rule(rule)]
            for line in heads:
                if text_table.cells(line) != head:
                    raise CaseError.at(path, line.number, "a line above a rule repeats the head, and this one does not")
            repeated = {id(line) for line in [*heads, *lines[:1]]}
            arrival.partitions[partition] = [
                line for line in part if not text_table.is_rule(line) and id(line) not in repeated
            ]
    return InputRows(path, arrivals, head)
