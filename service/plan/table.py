"""A table as a CREATE TABLE statement declares it: columns, time attribute, key, connector, formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from service.plan.expressions import Expression
from service.plan.types import DataType


class TimeKind(Enum):
    """The clock of a column that is a time attribute of its table."""

    NONE = "none"
    EVENT = "event"
    PROCESSING = "processing"


class ColumnKind(Enum):
    """The source of the values of a column: the record, its metadata or an expression."""

    PHYSICAL = "physical"
    METADATA = "metadata"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A declared column. `metadata` is the connector's key ('timestamp', 'offset', ...) of a METADATA column;
    `expression` computes a COMPUTED column from the physical and metadata columns, by their index among *all* declared
    columns; a PROCTIME() column has time PROCESSING."""

    name: str
    type: DataType
    kind: ColumnKind = ColumnKind.PHYSICAL
    nullable: bool = True
    metadata: str = ""
    virtual: bool = False
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Startup:
    """'scan.startup.mode': earliest-offset, latest-offset, group-offsets, timestamp (with `timestamp` in ms) or
    specific-offsets (with `offsets` by partition)."""

    mode: str = "group-offsets"
    timestamp: int | None = None
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Bounded:
    """'scan.bounded.mode': unbounded, latest-offset, group-offsets, timestamp or specific-offsets."""

    mode: str = "unbounded"
    timestamp: int | None = None
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """A wire format and its options as written without the prefix: ('json', {'ignore-parse-errors': 'false'}).

    `registry` are those that say how to reach a schema registry, unresolved secrets included: which registry it is
    changes no row, so a checkpoint does not depend on them.
    """

    kind: str
    options: Mapping[str, str] = field(default_factory=dict)
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LookupOptions:
    """The way in which a table of a database is queried: its name there, `keys` at a time, over `connections` of a
    worker; `retries` times more where the database does not answer, for at most `patience` ms.

    Rows are cached if `cached`, `max_rows` of them in each worker, for the given ms after they were read and after
    they were last used (0 = forever); with `cache_missing` also that a key has none.
    """

    table: str
    keys: int = 1_000
    connections: int = 4
    retries: int = 3
    patience: int = 60_000
    cached: bool = False
    max_rows: int = 100_000
    expire_after_write: int = 0
    expire_after_access: int = 0
    cache_missing: bool = True


@dataclass(frozen=True, slots=True)
class Connector:
    """The place that a table's rows come from or go to.

    `kind` is 'kafka', 'upsert-kafka', 'datagen', 'jdbc', 'print' or 'blackhole'. `properties` are the `properties.*`
    options without the prefix, in Java's names, unresolved secrets included; `options` are the remaining known options.
    Of a table with a `topic_pattern` the `topics` are not known before it is read. A table of a database has `lookup`,
    and its URL, user and password in `properties`.
    """

    kind: str
    topics: tuple[str, ...] = ()
    topic_pattern: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    key_format: Format | None = None
    value_format: Format | None = None
    key_fields: tuple[str, ...] = ()
    key_fields_prefix: str = ""
    value_fields_include: str = "ALL"
    startup: Startup = field(default_factory=Startup)
    bounded: Bounded = field(default_factory=Bounded)
    idle_timeout: int = 0
    bad_input: str = "dead-letter"
    options: Mapping[str, str] = field(default_factory=dict)
    lookup: LookupOptions | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the catalog.

    `watermark` is the expression of WATERMARK FOR, over the declared columns by index; its value is the watermark that
    the row asserts. `rowtime` is the index of the event-time column. `key` holds the indexes of PRIMARY KEY columns.
    `upserts` asks of a format that carries changes to leave out the row before each update: what is left is an upsert
    stream by the key.
    """

    name: str
    columns: tuple[TableColumn, ...]
    connector: Connector
    key: tuple[int, ...] = ()
    rowtime: int | None = None
    watermark: Expression | None = None
    proctimes: frozenset[int] = frozenset()
    upserts: bool = False

    @property
    def lookup(self) -> LookupOptions | None:
        """How rows are looked up, of a table that is only looked up."""
        return self.connector.lookup

    def time_kind(self, index: int) -> TimeKind:
        """Return what kind of time attribute the column at `index` is."""
        if index == self.rowtime:
            return TimeKind.EVENT
        return TimeKind.PROCESSING if index in self.proctimes else TimeKind.NONE
