"""PARSE_URL: the parts of a URL, and the values of its query by their keys."""

from __future__ import annotations

import re

from service.plan.expressions import Call, Expression
from service.plan.types import STRING
from service.sql.errors import SqlError
from service.sql.expressions.context import Context
from service.sql.functions.signature import Arguments, constant_text, template_text

_URL = template_text(
    r"^([A-Za-z][A-Za-z0-9+.-]*):(?://((?:([^@/?#]*)@)?([^:/?#]*)(?::[0-9]+)?))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$"
)
_PARTS = {"PROTOCOL": 1, "AUTHORITY": 2, "USERINFO": 3, "HOST": 4, "PATH": 5, "QUERY": 6, "REF": 7}
"""The parts by name, and the group of the pattern that is each."""

_NULL_IF_EMPTY = ("QUERY", "REF", "USERINFO", "AUTHORITY")


def url_part(name: str, arguments: Arguments, context: Context) -> Expression:
    """Return PARSE_URL(url, part[, key]): NULL where there is no such part or key, or no URL. Raises SqlError for a
    constant part that no URL has."""
    part = constant_text(arguments[1])
    if part is not None and part not in _PARTS:
        raise SqlError(f"the part of {name} must be one of {', '.join(map(repr, _PARTS))}")
    if len(arguments) == 3:
        return _value_of_key(name, arguments, part)
    if part is not None:
        return Call(name, arguments[:1], STRING, _of_url(_piece(part)))
    whens = " ".join(f"WHEN '{each}' THEN {_piece(each)}" for each in _PARTS)
    return Call(name, arguments, STRING, _of_url(f"CASE {{1}} {whens} END"))


def _piece(part: str) -> str:
    found = f"regexp_extract({{0}}, {_URL}, {_PARTS[part]})"
    return f"nullif({found}, '')" if part in _NULL_IF_EMPTY else found


def _of_url(found: str) -> str:
    return f"CASE WHEN regexp_matches({{0}}, {_URL}) THEN {found} END"


def _value_of_key(name: str, arguments: Arguments, part: str | None) -> Expression:
    """The value that the query of a URL gives to a key; of a key that is there twice, the first."""
    if part is not None and part != "QUERY":
        raise SqlError(f"a key of {name} needs the part 'QUERY'", hint="leave the key out")
    query, key = _piece("QUERY"), constant_text(arguments[2])
    if part is not None and key is not None:
        pair = template_text(f"(?:&|^){re.escape(key)}=([^&]*)")
        template = f"CASE WHEN regexp_matches({query}, {pair}) THEN regexp_extract({query}, {pair}, 1) END"
        return Call(name, arguments[:1], STRING, template)
    # A key that comes from a row is looked for as text, so that no sign in it has a meaning.
    pairs = f"('&' || {query})"
    start = f"instr({pairs}, '&' || {{2}} || '=')"
    value = f"regexp_extract(substr({pairs}, {start} + length({{2}}) + 2), '^[^&]*')"
    return Call(name, arguments, STRING, f"CASE WHEN {{1}} = 'QUERY' AND {start} > 0 THEN {value} END")
