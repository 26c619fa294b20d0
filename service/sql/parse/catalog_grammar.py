"""Statements about catalogs and sessions, which a file has no use for: DROP, USE, SHOW, CREATE CATALOG and CREATE
DATABASE, and those about modules and jars.

A file declares all that it needs, in the one catalog and database that there are. What scripts for a shared catalog
begin with is taken where it has no effect, and refused where it would have one.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.parser import Parser

from service.sql.errors import SqlError
from service.sql.parse.statements import Drop, Passed
from service.sql.parse.table_grammar import table_name, with_clause

CATALOG, DATABASE = "default_catalog", "default_database"
_ONE = f"there is one catalog, {CATALOG}, with one database, {DATABASE}"
_MODULES = "functions do not come in modules"

_NOT_THERE: Mapping[str, str] = {
    "FUNCTION": "there are no user-defined functions",
    "CATALOG": _ONE,
    "DATABASE": _ONE,
    "MODULE": _MODULES,
    "MATERIALIZED TABLE": "there are no materialized tables: CREATE TABLE ... AS is kept up to date",
}
"""What a file cannot drop, and why."""

_OF_SESSIONS: Mapping[tuple[str, str], str] = {
    **dict.fromkeys((("LOAD", "MODULE"), ("UNLOAD", "MODULE")), f"{_MODULES}: docs/functions.md lists all"),
    **dict.fromkeys((("ADD", "JAR"), ("REMOVE", "JAR")), "there are no jars: connectors and formats are built in"),
}
"""Statements that change a session of Flink, and why there are none here."""


def drop(parser: Parser, at: int) -> Drop | Passed:
    """Return what follows DROP. Raises SqlError for what cannot be dropped."""
    parser._match_text_seq("TEMPORARY")
    parser._match_text_seq("SYSTEM")
    materialized = "MATERIALIZED " if parser._match_text_seq("MATERIALIZED") else ""
    kind = materialized + (parser._curr.text.upper() if parser._curr else "")
    if kind not in ("TABLE", "VIEW", *_NOT_THERE):
        raise SqlError(f"DROP {kind} is not supported", hint="write DROP TABLE or DROP VIEW", at=at)
    parser._advance()
    if_exists = parser._match_text_seq("IF", "EXISTS")
    name = table_name(parser)
    parser._match_texts(("RESTRICT", "CASCADE"))
    if kind in ("TABLE", "VIEW"):
        return Drop(kind, name, if_exists, at)
    if not if_exists:
        raise SqlError(f"DROP {kind} is not supported", detail=_NOT_THERE[kind], hint="leave the statement out", at=at)
    return Passed(f"DROP {kind} IF EXISTS", "there is none to drop", at)


def use(parser: Parser, at: int) -> Passed:
    """Return what follows USE: of a catalog and of a database only the one that there is."""
    if parser._match_text_seq("MODULES"):
        while parser._curr:
            parser._advance()
        return Passed("USE MODULES", "functions do not come in modules", at)
    parser._match_text_seq("CATALOG")
    name = table_name(parser)
    _check_default(name.text, name.at)
    return Passed("USE", _ONE, at)


def show(parser: Parser, at: int) -> Passed:
    """Pass over SHOW and DESCRIBE, which answer a person at a prompt."""
    while parser._curr:
        parser._advance()
    return Passed(parser._tokens[0].text.upper(), "there is no prompt to answer at", at)


def create_catalog(parser: Parser, at: int) -> Passed:
    """Return what follows CREATE, of a CATALOG or a DATABASE."""
    kind = parser._curr.text.upper()
    parser._advance()
    parser._match_text_seq("IF", "NOT", "EXISTS")
    name = table_name(parser)
    _check_default(name.text, name.at)
    if parser._match_text_seq("COMMENT"):
        parser._advance()
    with_clause(parser)
    return Passed(f"CREATE {kind}", _ONE, at)


def check_session(words: tuple[str, str], at: int) -> None:
    """Raise SqlError if a statement that begins with `words` would change a session of Flink."""
    if why := _OF_SESSIONS.get(words):
        raise SqlError(f"{' '.join(words)} is not supported", detail=why, hint="leave the statement out", at=at)


def _check_default(name: str, at: int) -> None:
    if name not in (CATALOG, DATABASE, f"{CATALOG}.{DATABASE}"):
        raise SqlError(f'there is no catalog or database "{name}"', detail=_ONE, hint="leave the statement out", at=at)
