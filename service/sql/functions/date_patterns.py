"""Date patterns: Java's letters (yyyy-MM-dd HH:mm:ss) as DuckDB's directives (%Y-%m-%d %H:%M:%S)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.sql.errors import SqlError
from service.sql.functions.signature import template_text

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(names)})"


# Letters and the number of their repetitions -> the directive that writes them, and what Java reads for them.
_FIELDS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("%Y", "[0-9]{4}"),
    "uuuu": ("%Y", "[0-9]{4}"),
    "yy": ("%y", "[0-9]{2}"),
    "uu": ("%y", "[0-9]{2}"),
    "y": ("%Y", "[0-9]{1,4}"),
    "u": ("%Y", "[0-9]{1,4}"),
    "M": ("%-m", "[0-9]{1,2}"),
    "MM": ("%m", "[0-9]{2}"),
    "MMM": ("%b", _one_of(n[:3] for n in _MONTHS)),
    "MMMM": ("%B", _one_of(_MONTHS)),
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
    **dict.fromkeys(("E", "EE", "EEE"), ("%a", _one_of(n[:3] for n in _DAYS))),
    "EEEE": ("%A", _one_of(_DAYS)),
}
_WRITTEN_ONLY: Mapping[str, str] = {
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "q": "CAST(quarter({0}) AS VARCHAR)",
    "e": "CAST(dayofweek({0}) + 1 AS VARCHAR)",
}
# How a distance from UTC is written, by its letters: +02, +0200, +02:00; Z is none.
_OFFSETS: Mapping[str, str] = {
    "X": "Z|[+-][0-9]{2}(?:[0-9]{2})?",
    "XX": "Z|[+-][0-9]{4}",
    "XXX": "Z|[+-][0-9]{2}:[0-9]{2}",
    **dict.fromkeys(("Z", "ZZ", "ZZZ"), "[+-][0-9]{4}"),
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
            raise SqlError(
                f"the pattern '{pattern}' has a quotation that does not end",
                detail=f"it begins with {pattern[position:]}",
                hint="close it with ', and write '' for the sign itself",
            )
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
        detail=f"supported are {', '.join(dict.fromkeys((*_FIELDS, 'S to SSSSSS', *_WRITTEN_ONLY)))};"
        f" to read a distance from UTC, {', '.join(_OFFSETS)}",
        hint="text stands in single quotes, which are doubled inside a string",
    )


def written(pattern: str) -> str:
    """Return DuckDB text that writes the moment {0} by a Java pattern. Raises SqlError for letters that are not
    supported."""
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
    """The reader of a Java pattern: texts that match `expression`, by the strptime format `directives`.

    `weekday` is the directive of a day of the week, which must be that of the date; its name is a group of
    `expression`. `century` is an expression whose first group is what stands before a year of two digits. `offset` is
    the expression of a distance from UTC at the end, the last group; what stands before it is then the first.
    """

    expression: str
    directives: str
    weekday: str = ""
    century: str = ""
    offset: str = ""

    def moment(self, text: str) -> str:
        """Return DuckDB text: the TIMESTAMP that `text` says, NULL if it does not fit the pattern.

        It is the wall clock of the text: a distance from UTC must be there, and is passed over.
        """
        read = f"regexp_extract({text}, {template_text(self.expression)}{', 1' if self.offset else ''})"
        if self.century:
            read = f"regexp_replace({read}, {template_text(self.century)}, '\\120\\2')"
        moment = f"try_strptime({read}, {template_text(self.directives)})"
        if "%Y" not in self.directives and "%y" not in self.directives:
            moment = f"try_strptime('1970 ' || {read}, {template_text('%Y ' + self.directives)})"
        if not self.weekday:
            return moment
        named = f"regexp_extract({text}, {template_text(self.expression)}, {2 if self.offset else 1})"
        return f"CASE WHEN strftime({moment}, {template_text(self.weekday)}) = {named} THEN {moment} END"

    def instant(self, text: str) -> str:
        """Return DuckDB text: the instant that `text` says with its distance from UTC, as a TIMESTAMP in UTC."""
        group = 3 if self.weekday else 2
        written = f"regexp_extract({text}, {template_text(self.expression)}, {group})"
        offset = f"rpad(replace(replace({written}, 'Z', '+'), ':', ''), 5, '0')"
        minutes = f"(CAST({offset}[2:3] AS BIGINT) * 60 + CAST({offset}[4:5] AS BIGINT))"
        moment = self.moment(text)
        ahead = f"CASE {offset}[1] WHEN '-' THEN -{minutes} ELSE {minutes} END"
        return f"CASE WHEN {moment} IS NOT NULL THEN {moment} - to_minutes({ahead}) END"


def reader(pattern: str, *, lenient: bool = False) -> Reader:
    """Return how to read text by a Java pattern; leniently, a number may have fewer digits and more text may follow.

    A date without a year is one of 1970. A year of two digits is one of this century; leniently, it is one from 1969 to
    2068. Raises SqlError for letters that cannot be read, or a distance from UTC that is not at the end.
    """
    expression, directives = "", ""
    weekday, century = "", ""
    before, offset = "", ""
    for letters, literal in _tokens(pattern):
        if offset:
            raise SqlError(f"a distance from UTC stands at the end of a pattern, unlike in '{pattern}'")
        if letters in _OFFSETS:
            offset = _OFFSETS[letters]
            continue
        form, directive = re.escape(literal), literal.replace("%", "%%")
        group = "{}"
        if letters in _FIELDS and letters not in ("y", "u", "D", "DDD"):
            directive, form = _FIELDS[letters]
            directive = directive.replace("-", "")
            if lenient:
                form = re.sub(r"\{(\d)\}", r"{1,\1}", form).replace("(?:", "(?i:")
            elif directive == "%y":
                century, directive = f"^({before})({form})", "%Y"
            elif letters[0] == "E" and not weekday:
                weekday, group = directive, "({})"
        elif letters and set(letters) == {"S"} and len(letters) <= 6:
            form = f"[0-9]{{1,{len(letters)}}}" if lenient else f"[0-9]{{{len(letters)}}}"
            directive = "%f"
        elif letters:
            raise _unknown(letters, pattern)
        before += form
        expression += group.format(form)
        directives += directive
    if offset:
        expression = f"({expression})({offset})"
    return Reader(f"^{expression}" if lenient else f"^{expression}$", directives, weekday, century, offset)
