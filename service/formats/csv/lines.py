"""The cells of one line of CSV that holds quotes, escapes or line ends, as Jackson tells them apart, which Flink reads
CSV with.

A cell that begins with a quote ends with the next one that is not doubled or escaped; blanks may follow it, and nothing
else. In any other cell a quote is a character. The escape character takes the next one as it is, or n, r, t and 0 as
what they stand for in Java.

>>> LineParser(CsvOptions(escape="\\\\")).cells('1,"say ""hi"", then",two\\\\nlines')
['1', 'say "hi", then', 'two\\nlines']
"""

from __future__ import annotations

import re

from service.formats.csv.options import CsvOptions

_NAMED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


class MalformedLineError(ValueError):
    """A line that cannot be split into cells; the text says why."""


class LineParser:
    """Splits lines one by one. Picklable."""

    def __init__(self, options: CsvOptions) -> None:
        escape = options.escape
        quote, delimiter, escaped = (re.escape(mark) for mark in (options.quote, options.delimiter, escape))
        blank = "".join(rf"\x{code:02x}" for code in range(33) if chr(code) not in ("\n", "\r", options.delimiter))
        # Possessive, so that a line without its last quote is not tried in every way.
        inside = rf"(?:[^{quote}{escaped}]++|{quote}{quote}" + (rf"|{escaped}." if escape else "") + ")*+"
        plain = rf"(?:[^{delimiter}{escaped}\r\n]++" + (rf"|{escaped}." if escape else "") + ")*+"
        whole = rf"(?!{quote})({plain})" if quote else f"({plain})"
        self._cell = re.compile(
            (rf"(?:{quote}({inside}){quote}[{blank}]*+|{whole})" if quote else f"(?:(?!)()|{whole})")
            + f"({delimiter})?",
            re.DOTALL,
        )
        self._escaped = re.compile(rf"{escaped}(.)", re.DOTALL) if escape else None
        self._doubled = re.compile(rf"{quote}{quote}" + (rf"|{escaped}(.)" if escape else ""), re.DOTALL)
        self._quote, self._escape = options.quote, escape

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line, which may end with line ends; raises MalformedLineError."""
        line = line.rstrip("\r\n")
        found: list[str] = []
        at = 0
        while True:
            cell = self._cell.match(line, at)
            if cell is None:
                raise MalformedLineError(f"the quote of cell {len(found) + 1} is not closed")
            at = cell.end()
            found.append(self._value(cell))
            if cell[3] is None:
                break
        if at < len(line):
            raise MalformedLineError(self._reason(line[at], len(found)))
        return found

    def _value(self, cell: re.Match[str]) -> str:
        if cell[1] is None:
            return cell[2] if self._escaped is None else self._escaped.sub(_named, cell[2])
        return self._doubled.sub(lambda each: _named(each) if each.lastindex else self._quote, cell[1])

    def _reason(self, left: str, cells: int) -> str:
        """The reason why a line cannot continue with the character `left` after its last cell."""
        if left in "\r\n":
            return "the record has more than one line"
        if left == self._escape:
            return "the record ends with the escape character"
        return f'the character "{left}" follows the closing quote of cell {cells}'


def _named(escaped: re.Match[str]) -> str:
    return _NAMED.get(escaped[1], escaped[1])
