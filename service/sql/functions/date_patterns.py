"""Date patterns: Java's letters (yyyy-MM-dd HH:mm:ss) as DuckDB's directives (%Y-%m-%d %H:%M:%S)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from service.sql.errors import SqlError
from service.sql.functions.signature import template_text

# Letters repeated so many times -> the directive that writes them, and what Java reads for them.
_FIELDS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("%Y", "[0-9]{4}"),
    "uuuu": ("%Y", "[0-9]{4}"),
    "yy": ("%y", "[0-9]{2}"),
    "uu": ("%y", "[0-9]{2}"),
    "y": ("%Y", "[0-9]{1,4}"),
    "u": ("%Y", "[0-9]{1,4}"),
    "M": ("%-m", "[0-9]{1,2}"),
    "MM": ("%m", "[0-9]{2}"),
    "MMM": ("%b", "[A-Za-z]{3}"),
    "MMMM": ("%B", "[A-Za-z]+"),
    "d": ("%-d", "[0-9]{1,2}"),
    "dd": ("%d", "[0-9]{2}"),
    "D": ("%-j", "[0-9]{1,3}"),
    "DDD": ("%j", "[0-9]{3}"),
    "H": ("%-H", "[0-9]{1,2}"),
    "HH": ("%H", "[0-9]{2}"),
    "h": ("%-I", "[0-9]{1,2}"),
    "hh": ("%I", "[0-9]{2}"),
    "m": ("%-M", "[0-9]{1,2}"),
    "mm": ("%M", "[0-9]{2}"),
    "s": ("%-S", "[0-9]{1,2}"),
    "ss": ("%S", "[0-9]{2}"),
    "a": ("%p", "(?:AM|PM)"),
    "E": ("%a", "[A-Za-z]{3}"),
    "EE": ("%a", "[A-Za-z]{3}"),
    "EEE": ("%a", "[A-Za-z]{3}"),
    "EEEE": ("%A", "[A-Za-z]+"),
}
_WRITTEN_ONLY: Mapping[str, str] = {
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "q": "CAST(quarter({0}) AS VARCHAR)",
    "e": "CAST(dayofweek({0}) + 1 AS VARCHAR)",
}
_TOKENS = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<other>[^A-Za-z'])")


class _Token(NamedTuple):
    letters: str
    literal: str


def _tokens(pattern: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(pattern):
        found = _TOKENS.match(pattern, position)
        if found is None:
            raise SqlError(f"the pattern '{pattern}' has a quotation that does not end")
        position = found.end()
        if found["letters"]:
            tokens.append(_Token(found["letters"], ""))
        elif found["quoted"] is not None:
            tokens.append(_Token("", found["quoted"].replace("''", "'") or "'"))
        elif found["other"] in "[]{}#":
            raise SqlError(f"{found['other']} in the pattern '{pattern}' is not supported", hint="put it in quotes")
        else:
            tokens.append(_Token("", found["other"]))
    return tokens


def _unknown(letters: str, pattern: str) -> SqlError:
    return SqlError(
        f"the letters {letters} in the pattern '{pattern}' are not supported",
        detail=f"supported are {', '.join(dict.fromkeys((*_FIELDS, 'S to SSSSSS', *_WRITTEN_ONLY)))}",
        hint="text stands in single quotes, which are doubled inside a string",
    )


def written(pattern: str) -> str:
    """DuckDB text that writes the moment {0} by a Java pattern."""
    pieces: list[str] = []
    directives = ""

    def flush() -> None:
        nonlocal directives
        if directives:
            pieces.append(f"strftime({{0}}, {template_text(directives)})")
        directives = ""

    for letters, literal in _tokens(pattern):
        if not letters:
            directives += literal.replace("%", "%%")
        elif letters in _FIELDS:
            directives += _FIELDS[letters][0]
        elif set(letters) == {"S"} and len(letters) <= 9:
            flush()
            pieces.append(f"left(strftime({{0}}, '%f000'), {len(letters)})")
        elif letters in _WRITTEN_ONLY:
            flush()
            pieces.append(_WRITTEN_ONLY[letters])
        else:
            raise _unknown(letters, pattern)
    flush()
    return f"({' || '.join(pieces)})" if pieces else "CASE WHEN {0} IS NOT NULL THEN '' END"


class Reader(NamedTuple):
    """How a Java pattern is read: texts that match `expression`, by the strptime format `directives`."""

    expression: str
    directives: str

    def moment(self, text: str) -> str:
        """DuckDB text: the TIMESTAMP that `text` says, NULL if it does not fit the pattern."""
        checked = f"regexp_extract({text}, {template_text(self.expression)})"
        return f"try_strptime({checked}, {template_text(self.directives)})"


def reader(pattern: str, *, lenient: bool = False) -> Reader:
    """How to read text by a Java pattern; leniently, a number may have fewer digits and more text may follow."""
    expression, directives = "", ""
    for letters, literal in _tokens(pattern):
        if not letters:
            expression += re.escape(literal)
            directives += literal.replace("%", "%%")
        elif letters in _FIELDS and letters not in ("y", "u", "D", "DDD"):
            directive, digits = _FIELDS[letters]
            expression += re.sub(r"\{(\d)\}", r"{1,\1}", digits) if lenient else digits
            directives += directive.replace("-", "")
        elif set(letters) == {"S"} and len(letters) <= 6:
            expression += f"[0-9]{{1,{len(letters)}}}" if lenient else f"[0-9]{{{len(letters)}}}"
            directives += "%f"
        else:
            raise _unknown(letters, pattern)
    return Reader(f"^{expression}" if lenient else f"^{expression}$", directives)
