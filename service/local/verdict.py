"""Comparison of the results with the expected files of a case, and their update."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from operators.sql import Sql
from service.local import cells, expected, written
from service.local.case import Outcome
from service.local.expected import Section
from service.local.files import expectation_files
from service.local.inputs import RECORDS
from service.plan.program import Output


def compare(folder: Path, outcome: Outcome, sql: Sql) -> list[str]:
    """Return the differences between the expected and the actual results, as lines to read; empty if they agree.

    Raises CaseError for an expectation that is not written as one.
    """
    files = outcome.files()
    lines: list[str] = []
    for name in sorted({*files, *expectation_files(folder)}):
        path = folder / name
        wanted = expected.read(path, _titles(name, outcome)) if path.exists() else []
        output = outcome.tables.get(name.rsplit(".", 1)[0])
        wanted = [tuple(_canonical(output, s, sql) for s in sections) for sections in wanted]
        lines += expected.differences(name, wanted, files.get(name, []))
    for name, batches in outcome.records.items():
        lines += written.differences(folder / f"{name}{RECORDS}", batches)
    return lines


def update(folder: Path, outcome: Outcome) -> list[str]:
    """Write the actual results as the expectation. Return the names of the files that changed."""
    files = outcome.files()
    changed = []
    for name in expectation_files(folder):
        if name not in files:
            (folder / name).unlink()
            changed.append(name)
    texts = {name: expected.written(batches) for name, batches in files.items()}
    texts |= {f"{name}{RECORDS}": written.text(batches) for name, batches in outcome.records.items()}
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != text.encode():
            path.write_text(text)
            changed.append(name)
    return changed


def _titles(name: str, outcome: Outcome) -> set[str]:
    """The titles that tables of an expectation file may have. A sink may be named as one of the files with titles."""
    titles = outcome.titles.get(name)
    if titles is None:
        return {""}
    return {*titles, ""} if Path(name).stem in outcome.tables else titles


def _canonical(output: Output | None, section: Section, sql: Sql) -> Section:
    """The section with each cell written the way in which answers are; a cell that is no value stays as it is."""
    if output is None or not section.rows:
        return section
    types = {output.table.columns[c].name: output.table.columns[c].type for c in output.columns}
    columns = []
    for name, texts in zip(section.head, zip(*section.rows, strict=True), strict=True):
        try:
            known = types.get(name)
            columns.append(
                cells.render(pa.chunked_array([cells.parse(texts, known, sql)]), known, sql) if known else texts
            )
        except cells.CellError:
            columns.append(texts)
    return Section(section.title, section.head, tuple(zip(*columns, strict=True)))
