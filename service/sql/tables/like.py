"""CREATE TABLE ... LIKE: a declaration together with that of another table.

Physical columns always come along. The rest is INCLUDING by default: what both declare is a mistake, except options,
which are OVERWRITING: the new table's win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from service.sql.errors import SqlError, did_you_mean
from service.sql.parse.statements import ColumnClause, CreateTable, LikeClause

T = TypeVar("T")


def with_base(statement: CreateTable, declared: Mapping[str, CreateTable]) -> CreateTable:
    """Return `statement` with what its LIKE clause takes from the table named there. Raises SqlError if there is none,
    or both declare what only one may."""
    like = statement.like
    if like is None:
        return statement
    base = declared.get(like.table.text)
    if base is None:
        raise SqlError(
            f'table "{like.table.text}" does not exist',
            detail=f"known here: {', '.join(declared)}" if declared else "no table is declared before this line",
            hint=did_you_mean(like.table.text, declared),
            at=like.table.at,
        )
    strategies = _strategies(like)
    options = base.options if strategies["OPTIONS"] != "EXCLUDING" else ()
    own = {o.key for o in statement.options}
    if strategies["OPTIONS"] == "INCLUDING" and (both := next((o for o in options if o.key in own), None)):
        raise SqlError(
            f"option '{both.key}' is given here and by \"{base.name.text}\"",
            hint="write LIKE ... (OVERWRITING OPTIONS), or leave it out",
            at=like.table.at,
        )
    return replace(
        statement,
        columns=_columns(statement, base, strategies),
        keys=_one("PRIMARY KEY", statement.keys, base.keys, strategies["CONSTRAINTS"], like),
        watermarks=_one("WATERMARK", statement.watermarks, base.watermarks, strategies["WATERMARKS"], like),
        options=tuple(o for o in options if o.key not in own) + statement.options,
        like=None,
    )


def _strategies(like: LikeClause) -> Mapping[str, str]:
    given = dict(like.strategies)
    default = given.get("ALL", "INCLUDING")
    features = dict.fromkeys(("CONSTRAINTS", "GENERATED", "METADATA", "WATERMARKS"), default)
    return {**features, "OPTIONS": given.get("ALL", "OVERWRITING"), **given}


def _columns(statement: CreateTable, base: CreateTable, strategies: Mapping[str, str]) -> tuple[ColumnClause, ...]:
    own = {c.name.text: c for c in statement.columns}
    taken: list[ColumnClause] = []
    for column in base.columns:
        strategy = strategies[feature] if (feature := _feature(column)) else "INCLUDING"
        if strategy == "EXCLUDING" or (strategy == "OVERWRITING" and column.name.text in own):
            continue
        if column.name.text in own:
            raise SqlError(
                f'column "{column.name.text}" is declared here and by "{base.name.text}"',
                at=own[column.name.text].name.at,
            )
        taken.append(column)
    return (*taken, *statement.columns)


def _feature(column: ColumnClause) -> str:
    if column.expression is not None:
        return "GENERATED"
    return "METADATA" if column.metadata is not None else ""


def _one(what: str, own: tuple[T, ...], base: tuple[T, ...], strategy: str, like: LikeClause) -> tuple[T, ...]:
    """The clause of the table or of its base; there is one at most."""
    if strategy == "EXCLUDING" or not base:
        return own
    if own and strategy == "INCLUDING":
        raise SqlError(f'the table and "{like.table.text}" both have a {what}', at=like.table.at)
    return own or base
