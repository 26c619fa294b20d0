"""The table of expressions that Flink answers otherwise: its reasons, and for each an example with both answers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from service.plan import types
from tests.sql.flink_oracle import DIFFERENCES, FAILS, REFUSED, Case, cases, ours

LONGEST = 40
"""Characters of a value that are shown."""


class Example(NamedTuple):
    """An expression over a row, and what it answers in Flink and here; `whole` if the row is shown."""

    expression: str
    flink: str
    tailrace: str
    whole: bool

    @property
    def clumsiness(self) -> tuple[bool, int]:
        """The least is the best to show."""
        return not self.whole, len(self.expression + self.flink + self.tailrace)


def table() -> str:
    """The table in Markdown."""
    lines = ["| what differs | for example | Flink | Tailrace |", "|---|---|---|---|"]
    by_name = {case.name: case for case in cases()}
    for reason, names in DIFFERENCES.items():
        found = [example for name in names for example in _examples(by_name[name])]
        best = min(found, key=lambda example: example.clumsiness)
        lines.append("| " + " | ".join((reason, best.expression, best.flink, best.tailrace)) + " |")
    return "\n".join(lines)


def _examples(case: Case) -> Iterator[Example]:
    """Each row that the two answer differently; of an expression that one refuses, the first row."""
    type_, answers = ours(case)
    refused = REFUSED in (type_, case.type)
    for number, row in enumerate(case.rows):
        theirs = REFUSED if case.type == REFUSED else case.answers[number]
        mine = REFUSED if type_ == REFUSED else answers[number]
        if theirs == mine or (refused and number > 0):
            continue
        used = {name: value for name, value in row.items() if re.search(rf"\b{name}\b", case.sql)}
        written = {name: _value(value, case.columns[name]) for name, value in used.items()}
        where = [f"`{name}` = {value}" for name, value in written.items()]
        whole = refused or max(map(len, written.values()), default=0) <= LONGEST
        expression = ", ".join([_code(case.sql), *(where if whole and not refused else ())])
        yield Example(expression, _answer(theirs, "the job fails"), _answer(mine, "dead letter"), whole)


def _answer(text: str | None, failure: str) -> str:
    match text:
        case None:
            return "NULL"
        case _ if text == FAILS:
            return failure
        case _ if text == REFUSED:
            return "refused"
        case _ if len(text) > LONGEST:
            return f"{_code(text[: LONGEST // 2])}..."
        case _:
            return _code(text)


def _value(value: Any, type_: types.DataType) -> str:
    """A value of a row, as one would write it."""
    if value is None:
        return "NULL"
    if type_ == types.BYTES:
        return f"`x'{base64.b64decode(value).hex()}'`"
    if isinstance(value, Decimal):
        return f"`{value:E}`" if abs(value) > 10**15 else f"`{value}`"
    return _code(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _code(text: str) -> str:
    """`text` as code inside a table, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")
