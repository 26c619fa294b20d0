"""The statements of a pipeline file as they were written, before any name is looked up."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, and the offset where it stands."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Option:
    """'key' = 'value' of a WITH clause or an OPTIONS hint."""

    key: str
    value: str
    key_at: int
    value_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnClause:
    """A column of CREATE TABLE: physical or metadata with a `type`, or computed by an `expression`.

    `metadata` is the connector's key of a METADATA column, its name where FROM is left out.
    """

    name: Name
    type: exp.DataType | None = None
    expression: exp.Expr | None = None
    metadata: str | None = None
    metadata_at: int = 0
    virtual: bool = False
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class KeyClause:
    """PRIMARY KEY (...); `enforced` where NOT ENFORCED is missing."""

    columns: tuple[Name, ...]
    enforced: bool
    at: int


@dataclass(frozen=True, slots=True)
class WatermarkClause:
    """WATERMARK FOR column AS expression."""

    column: Name
    expression: exp.Expr
    at: int


@dataclass(frozen=True, slots=True)
class LikeClause:
    """LIKE table (...): `strategies` says EXCLUDING, INCLUDING or OVERWRITING for a part of the table, or for ALL."""

    table: Name
    strategies: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE; of CREATE TABLE ... AS it has the `query`, whose columns are the table's."""

    name: Name
    columns: tuple[ColumnClause, ...]
    keys: tuple[KeyClause, ...]
    watermarks: tuple[WatermarkClause, ...]
    options: tuple[Option, ...]
    if_not_exists: bool
    at: int
    like: LikeClause | None = None
    query: exp.Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """CREATE [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query."""

    name: Name
    columns: tuple[Name, ...]
    query: exp.Expr
    if_not_exists: bool
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTemporalFunction:
    """CREATE TEMPORARY TABLE FUNCTION name AS table PRIMARY KEY (columns) TIME ATTRIBUTE (column)."""

    name: Name
    table: Name
    key: tuple[Name, ...]
    time: Name
    if_not_exists: bool
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """INSERT INTO table [(columns)] query; `options` come from an OPTIONS hint behind the table's name."""

    table: Name
    columns: tuple[Name, ...]
    query: exp.Expr
    options: tuple[Option, ...]
    at: int


@dataclass(frozen=True, slots=True)
class StatementSet:
    """INSERTs that run as one query."""

    inserts: tuple[Insert, ...]
    at: int


@dataclass(frozen=True, slots=True)
class SetOption:
    """SET 'key' = 'value'."""

    option: Option
    at: int


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET ['key']: back to the default, of one key or of all."""

    key: Name | None
    at: int


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP TABLE or VIEW: the name is free again; a topic stays."""

    kind: str
    name: Name
    if_exists: bool
    at: int


@dataclass(frozen=True, slots=True)
class Unread:
    """A statement that cannot be read. Of a CREATE TABLE or VIEW it has the `name`, which is taken, while nothing else
    is known of it. Without a name it may have been a SET or RESET, and what is in force after it is not known."""

    name: Name | None
    at: int


@dataclass(frozen=True, slots=True)
class Passed:
    """A statement that is taken without effect, and why it has none."""

    words: str
    why: str
    at: int


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of INSERTs or of a query."""

    statement: Insert | StatementSet | exp.Expr
    at: int


Statement = (
    CreateTable
    | CreateView
    | CreateTemporalFunction
    | Insert
    | StatementSet
    | SetOption
    | Reset
    | Explain
    | Drop
    | Passed
    | Unread
)
