"""LIKE, SIMILAR TO and regular expressions.

Flink's expressions are Java's, DuckDB's are RE2's: they agree but for look-around and back references, which RE2 does
not have. A constant expression that RE2 cannot take is refused where it stands.
"""

from __future__ import annotations

import re
from functools import cache

import duckdb

from service.plan.expressions import WHERE_MET, Call, Column, Expression
from service.plan.types import BOOLEAN, INT, STRING, Array
from service.sql.errors import SqlError
from service.sql.expressions.context import Context
from service.sql.functions.signature import Arguments, Table, built, constant_integer, constant_text, template_text


@cache
def _refusal(pattern: str) -> str:
    """Why DuckDB cannot take a regular expression; nothing if it can."""
    try:
        with duckdb.connect() as connection:
            connection.execute("SELECT regexp_matches('', $pattern)", {"pattern": pattern})
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return ""


def checked_pattern(pattern: Expression) -> str | None:
    """Return the text of a constant regular expression, None if it is not constant. Raises SqlError if DuckDB cannot
    take it."""
    text = constant_text(pattern)
    if text is not None and (why := _refusal(text)):
        raise SqlError(
            f"the regular expression '{text}' cannot be used",
            detail=why,
            hint="look-around and back references are not supported",
        )
    return text


WORK = 100_000_000
"""The largest product of the sizes of a row's regular expression and of its text: where RE2 has to follow all its
states, that is a second of a core. An expression of 100,000 characters over as long a text takes minutes."""


def _counts(expression: str) -> str:
    """The counts that `expression` finds in a pattern, as DuckDB text over the pattern {1}."""
    found = f"regexp_extract_all({{1}}, {template_text(expression)}, 1)"
    return f"list_transform({found}, lambda n: CAST(n AS DOUBLE))"


_EVERY_COUNT, _COUNT_OF_GROUP = r"[{,](\d+)", r"[)]\{(?:\d+,)?(\d+)"
_STATES = (
    # A counted repetition is as many copies: of a character or a class a few states, of a group all that is in it.
    f"(length({{1}}) + 8 * coalesce(list_sum({_counts(_EVERY_COUNT)}), 0))"
    f" * coalesce(list_product({_counts(_COUNT_OF_GROUP)}), 1)"
)
_LEAST_TEXT = 100
"""A text counts as at least so long: to read a pattern costs something, too."""

_AFFORDABLE = (
    f"CASE WHEN {_STATES} * (length({{0}}) + {_LEAST_TEXT}) > {WORK}"
    " THEN CAST('a regular expression of ' || length({1}) || ' characters for a text of ' || length({0})"
    " || ' takes too long' AS BOOLEAN) ELSE true END"
)


def _bounded(pattern: Expression, template: str) -> str:
    """`template`, of a text {0} and a pattern {1}: a pattern of a row fails the row if it takes too long."""
    return template if constant_text(pattern) is not None else f"CASE WHEN ({_AFFORDABLE}) THEN {template} END"


def _regexp(name: str, arguments: Arguments, context: Context) -> Expression:
    checked_pattern(arguments[1])
    return Call(name, arguments, BOOLEAN, _bounded(arguments[1], "({1} <> '' AND regexp_matches({0}, {1}))"))


def _extract(name: str, arguments: Arguments, context: Context) -> Expression:
    """The first match, or a group of it; NULL where there is none."""
    group = constant_integer(arguments[2]) if len(arguments) > 2 else (0 if name == "REGEXP_EXTRACT" else 1)
    pattern = checked_pattern(arguments[1])
    if group is None or not 0 <= group <= 9:
        raise SqlError(f"the group of {name} must be a number from 0 to 9")
    if pattern is not None and group > groups_of(pattern):
        return Call(name, arguments[:2], STRING, "CAST(NULL AS VARCHAR)")
    found, taken = "regexp_matches({0}, {1})", f"regexp_extract({{0}}, {{1}}, {group})"
    template = f"CASE WHEN {found} THEN {taken} END"
    if pattern is None:
        return Call(name, arguments[:2], STRING, _bounded(arguments[1], template))
    places = (Column(0, STRING), Column(1, STRING))
    parts = (Call("REGEXP", places, BOOLEAN, found), Call(name, places, STRING, taken, constants=(group,)))
    faster = Call(WHERE_MET, parts, STRING, "CASE WHEN {0} THEN {1} END")
    return Call(name, arguments[:2], STRING, template, faster=faster)


def _extract_all(name: str, arguments: Arguments, context: Context) -> Expression:
    """A group, the first if none is named, of all matches."""
    group = constant_integer(arguments[2]) if len(arguments) > 2 else 1
    pattern = checked_pattern(arguments[1])
    if pattern is None:
        raise SqlError(f"the pattern of {name} must be a constant", hint="write it out, such as '[a-z]+'")
    groups = groups_of(pattern)
    if group is None or not 0 <= group <= groups:
        found = "a value of each row" if group is None else f"group {group}"
        raise SqlError(
            f"{name} cannot take {found} of the pattern '{pattern}'",
            detail=f"the pattern has {groups or 'no'} group{'' if groups == 1 else 's'} in parentheses",
            hint="0 takes the whole match",
        )
    return Call(name, arguments[:2], Array(STRING), f"regexp_extract_all({{0}}, {{1}}, {group})")


def groups_of(pattern: str) -> int:
    """Return how many groups a regular expression captures."""
    return re.sub(r"\\.|\[[^\]]*\]", "", pattern).replace("(?:", "").count("(")


def _replace(name: str, arguments: Arguments, context: Context) -> Expression:
    """All matches; the replacement is taken as it is, without references to groups."""
    checked_pattern(arguments[1])
    return Call(
        name, arguments, STRING, _bounded(arguments[1], r"regexp_replace({0}, {1}, replace({2}, '\', '\\'), 'g')")
    )


def _count(name: str, arguments: Arguments, context: Context) -> Expression:
    checked_pattern(arguments[1])
    return Call(name, arguments, INT, _bounded(arguments[1], "CAST(len(regexp_extract_all({0}, {1})) AS INTEGER)"))


def _escape(arguments: Arguments) -> str | None:
    if len(arguments) < 3:
        return None
    text = constant_text(arguments[2])
    if text is None or len(text) != 1:
        raise SqlError("ESCAPE takes one character")
    return text


def _like(name: str, arguments: Arguments, context: Context) -> Expression:
    escape = _escape(arguments)
    pattern = constant_text(arguments[1])
    if escape and pattern is not None:
        rest = re.sub(re.escape(escape) + r"[%_" + re.escape(escape) + r"]", "", pattern)
        if escape in rest:
            raise SqlError(
                f"in the pattern '{pattern}' the character {escape} is not followed by %, _ or {escape}",
                detail=f"ESCAPE '{escape}' makes it the sign before them",
                hint=f"write {escape * 2} for the character itself",
            )
    clause = f" ESCAPE {template_text(escape)}" if escape else ""
    return Call(name, arguments[:2], BOOLEAN, f"({{0}} LIKE {{1}}{clause})")


def _similar(name: str, arguments: Arguments, context: Context) -> Expression:
    pattern = constant_text(arguments[1])
    if pattern is None:
        raise SqlError("the pattern of SIMILAR TO must be a constant")
    expression = similar_expression(pattern, _escape(arguments))
    if why := _refusal(expression):
        raise SqlError(f"the pattern '{pattern}' cannot be used", detail=why)
    return Call(name, arguments[:1], BOOLEAN, f"regexp_full_match({{0}}, {template_text(expression)}, 's')")


_CLASSES = {
    "ALPHA": "[A-Za-z]",
    "UPPER": "[A-Z]",
    "LOWER": "[a-z]",
    "DIGIT": r"\d",
    "ALNUM": "[A-Za-z0-9]",
    "SPACE": " ",
    "WHITESPACE": r"\s",
}


def similar_expression(pattern: str, escape: str | None) -> str:
    """Return the regular expression of a pattern of SIMILAR TO: % and _ are wildcards, | * + ? {} () [] as in
    expressions. Raises SqlError if it ends with its escape character.

    >>> similar_expression("a|b_%", None)
    'a|b..*'
    """
    out: list[str] = []
    i, inside = 0, False
    while i < len(pattern):
        c = pattern[i]
        named = re.match(r"\[?:([A-Za-z]+):\]?", pattern[i:])
        if escape and c == escape:
            if i + 1 == len(pattern):
                raise SqlError(f"the pattern '{pattern}' ends with its escape character")
            i += 1
            out.append(re.escape(pattern[i]))
        elif named and named[1].upper() in _CLASSES:
            found = _CLASSES[named[1].upper()]
            out.append(found.strip("[]") if inside else found)
            i += len(named[0]) - 1
        elif inside or c == "[":
            inside = c != "]"
            out.append(c)
        else:
            out.append({"%": ".*", "_": "."}.get(c, c))
        i += 1
    return "".join(out)


def _position(name: str, arguments: Arguments, context: Context) -> Expression:
    """Where the first match begins; 0 if there is none."""
    checked_pattern(arguments[1])
    before = "length(regexp_extract({0}, '^((?s:.*?))(?:' || {1} || ')', 1))"
    template = f"CAST(CASE WHEN regexp_matches({{0}}, {{1}}) THEN {before} + 1 ELSE 0 END AS INTEGER)"
    known = f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {template} END"
    return Call(name, arguments, INT, _bounded(arguments[1], known))


PATTERNS: Table = {
    "LIKE": (built("STRING, STRING", _like), built("STRING, STRING, STRING", _like)),
    "SIMILAR TO": (built("STRING, STRING", _similar), built("STRING, STRING, STRING", _similar)),
    "REGEXP": (built("STRING, STRING", _regexp),),
    "REGEXP_EXTRACT": (built("STRING, STRING", _extract), built("STRING, STRING, INT", _extract)),
    "REGEXP_SUBSTR": (
        built("STRING, STRING", lambda name, arguments, context: _extract("REGEXP_EXTRACT", arguments, context)),
    ),
    "REGEXP_REPLACE": (built("STRING, STRING, STRING", _replace),),
    "REGEXP_EXTRACT_ALL": (built("STRING, STRING", _extract_all), built("STRING, STRING, INT", _extract_all)),
    "REGEXP_INSTR": (built("STRING, STRING", _position),),
    "REGEXP_COUNT": (built("STRING, STRING", _count),),
}
