"""The expectation files of a golden case: tables as text, a section a batch, read and written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from service.local import text_table
from service.local.errors import CaseError
from service.local.text_table import Line

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One table of one batch, under a title (such as the operator whose late rows it holds), or none."""

    title: str
    head: Texts
    rows: tuple[Texts, ...]


Sections = tuple[Section, ...]
"""The tables of one batch."""

CUT = "---"


def written(batches: Sequence[Sections]) -> str:
    """Return the text of a file, which `read` reads back."""
    head: Texts = ()
    lines: list[str] = []
    wide = _widths(batches)
    for number, sections in enumerate(batches):
        lines += [CUT] if number else []
        for section in sections:
            lines += [section.title] if section.title else []
            table = text_table.aligned([section.head, *section.rows], wide[section.head])
            again = section.head == head and not section.title
            lines += table[2:] if again else table
            head = section.head
    return "\n".join(lines) + "\n"


def _widths(batches: Sequence[Sections]) -> dict[Texts, list[int]]:
    """One width a column for all tables that have the same head."""
    rows: dict[Texts, list[Texts]] = {}
    for section in (s for sections in batches for s in sections):
        rows.setdefault(section.head, [section.head]).extend(section.rows)
    return {head: text_table.widths(all_rows) for head, all_rows in rows.items()}


def read(path: Path, titles: Collection[str] = ("",)) -> list[Sections]:
    """Return the batches of a file; a head that is not repeated stays that of the batch before.

    `titles` are those that its tables may have; an empty one stands for a table without a title. Raises CaseError for
    whatever is no part of such a table.
    """
    batches = []
    head: Texts = ()
    for batch in text_table.read_batches(path):
        sections: list[tuple[str, Texts, list[Texts]]] = []
        for index, line in enumerate(batch.lines):
            before = batch.lines[index - 1] if index else None
            if not text_table.is_row(line):
                _check_title(path, batch.lines, index, titles)
            elif text_table.is_rule(line):
                if before is None or not text_table.is_row(before) or text_table.is_rule(before):
                    raise CaseError.at(path, line.number, "no head stands above this line")
            elif _is_head(batch.lines, index):
                head = text_table.cells(line)
                title = "" if before is None or text_table.is_row(before) else before.text
                _check_titled(path, line, title, titles)
                sections.append((title, head, []))
            else:
                if not sections:
                    _check_titled(path, line, "", titles)
                    sections.append(("", head, []))
                if len(text_table.cells(line)) != len(sections[-1][1]):
                    raise CaseError.at(path, line.number, "the row has not as many cells as the head")
                sections[-1][2].append(text_table.cells(line))
        batches.append(tuple(Section(t, h, tuple(rows)) for t, h, rows in sections))
    return batches


def _check_title(path: Path, lines: Sequence[Line], index: int, titles: Collection[str]) -> None:
    """Check that a line without a bar is the title of a table that follows."""
    line = lines[index]
    named = sorted(title for title in titles if title)
    if not named:
        message = f'"{line.text}" is no row: a row begins with a bar'
        raise CaseError.at(path, line.number, message, "write | value | value |; this file has no titles")
    if line.text not in named:
        message = f'"{line.text}" is neither a row, which begins with a bar, nor a title'
        raise CaseError.at(path, line.number, message, _known(named))
    if index + 1 == len(lines) or not _is_head(lines, index + 1):
        raise CaseError.at(path, line.number, f'no table with a head stands under the title "{line.text}"')


def _check_titled(path: Path, line: Line, title: str, titles: Collection[str]) -> None:
    if title not in titles:
        raise CaseError.at(path, line.number, "no title stands above this table", _known(titles))


def _known(titles: Collection[str]) -> str:
    known = ", ".join(sorted(titles))
    return f"the titles that can be are {known}" if known else "remove it: the pipeline has no rows that could be here"


def _is_head(lines: Sequence[Line], index: int) -> bool:
    return index + 1 < len(lines) and text_table.is_rule(lines[index + 1])


def merged(sections: Sequence[Section]) -> Sections:
    """Return the sections with one for each title and head: several shards, and several jobs, may have rows of one."""
    found: dict[tuple[str, Texts], list[Section]] = {}
    for section in sections:
        found.setdefault((section.title, section.head), []).append(section)
    return tuple(
        same[0] if len(same) == 1 else Section(*key, tuple(sorted(row for each in same for row in each.rows)))
        for key, same in found.items()
    )


def differences(name: str, wanted: Sequence[Sections], came: Sequence[Sections]) -> list[str]:
    """Return what differs, batch by batch, as lines to read; nothing if both agree. The order of rows within a batch
    does not count."""
    lines: list[str] = []
    for number in range(max(len(wanted), len(came))):
        before = merged(wanted[number]) if number < len(wanted) else ()
        after = merged(came[number]) if number < len(came) else ()
        for title in dict.fromkeys(s.title for s in (*before, *after)):
            left = {s.head: s for s in before if s.title == title}
            right = {s.head: s for s in after if s.title == title}
            found = _of_title(left, right)
            if found:
                lines += [f"{name}, batch {number + 1}{', ' + title if title else ''}:", *found]
    return lines


def _of_title(wanted: Mapping[Texts, Section], came: Mapping[Texts, Section]) -> list[str]:
    """What differs between the tables of one title, by their heads."""
    strange = [head for head in wanted if head not in came]
    if came and strange:
        are, expected = ("; ".join(map(", ".join, heads)) for heads in (came, strange))
        return [f"    the columns are {are}; expected are {expected}"]
    return [line for head in {**wanted, **came} for line in _section(wanted.get(head), came.get(head))]


def _section(wanted: Section | None, came: Section | None) -> list[str]:
    old, new = (sorted(s.rows) if s else [] for s in (wanted, came))
    some = came or wanted
    assert some is not None
    if old == new:
        return []
    marked: list[tuple[str, Texts]] = []
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            marked += [("   ", row) for row in old[a:b]]
        else:
            marked += [(" - ", row) for row in old[a:b]] + [(" + ", row) for row in new[c:d]]
    table = text_table.aligned([some.head, *(row for _, row in marked)])
    marks = ["   ", "   ", *(mark for mark, _ in marked)]
    note = {" - ": "  expected, but missing", " + ": "  not expected"}
    return [f"  {mark}{line}{note.get(mark, '')}" for mark, line in zip(marks, table, strict=True)]
