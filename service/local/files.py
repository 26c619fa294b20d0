"""The files of a golden case by their suffixes, and the tables that they belong to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from service.local.case import DEAD, LATE
from service.local.errors import CaseError
from service.local.inputs import RECORDS, ROWS
from service.plan.nodes import Job, Scan
from service.plan.walk import in_order

CHANGES = ".changes"
RESULT = ".result"


def expectation_files(folder: Path) -> list[str]:
    """Return the names of the expectation files of a case."""
    return [path.name for path in _with_suffix(folder, CHANGES, RESULT)]


def check_inputs(folder: Path, jobs: Sequence[Job]) -> None:
    """Check that each file of rows or records belongs to a table of the jobs. Raises CaseError."""
    read, written = _read(jobs), _written(jobs)
    for path in _with_suffix(folder, ROWS):
        if path.stem not in read:
            raise _stray(path, "reads", read)
    for path in _with_suffix(folder, RECORDS):
        if path.stem not in read | written:
            raise _stray(path, "reads or writes", read | written)


def check_expectations(folder: Path, jobs: Sequence[Job]) -> None:
    """Check that each expectation file belongs to a table that the jobs write. Raises CaseError."""
    written = _written(jobs)
    for path in _with_suffix(folder, CHANGES, RESULT):
        if path.stem not in written and path.name not in (LATE, DEAD):
            raise _stray(path, "writes", written)


def _with_suffix(folder: Path, *suffixes: str) -> list[Path]:
    """The files with these suffixes; hidden ones are those of editors."""
    return sorted(p for p in folder.iterdir() if p.suffix in suffixes and not p.name.startswith("."))


def _read(jobs: Sequence[Job]) -> set[str]:
    return {node.table.name for job in jobs for node in in_order(job.sinks) if isinstance(node, Scan)}


def _written(jobs: Sequence[Job]) -> set[str]:
    return {sink.table.name for job in jobs for sink in job.sinks}


def _stray(path: Path, verb: str, tables: Collection[str]) -> CaseError:
    known = f"it {verb} {', '.join(sorted(tables))}" if tables else f"it {verb} no table"
    return CaseError(f'{path}: the pipeline {verb} no table "{path.stem}"', f"{known}; rename the file, or remove it")
