"""METADATA columns: what Kafka knows of a record, beside its key and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from service.plan.table import Connector
from service.plan.types import BIGINT, BYTES, INT, STRING, Array, DataType, Map, Timestamp, TimestampLtz, flink
from service.sql.errors import SqlError, did_you_mean
from service.sql.parse.statements import ColumnClause, Name
from service.sql.scope import INTERNAL

_METADATA: dict[str, DataType] = {
    "topic": STRING,
    "partition": INT,
    "offset": BIGINT,
    "timestamp": TimestampLtz(3),
    "timestamp-type": STRING,
    "headers": Map(STRING, BYTES),
    "leader-epoch": INT,
}
"""What Kafka knows of a record, and its type."""

WRITABLE_METADATA = frozenset({"timestamp", "headers"})
"""The metadata that a sink can set."""

_DEBEZIUM_METADATA: dict[str, DataType] = {
    "value.schema": STRING,
    "value.ingestion-timestamp": TimestampLtz(3),
    "value.source.timestamp": TimestampLtz(3),
    "value.source.database": STRING,
    "value.source.schema": STRING,
    "value.source.table": STRING,
    "value.source.properties": Map(STRING, STRING),
}
"""What a record of debezium-json says of where it comes from, and its type."""

METADATA_OF_FORMATS: Mapping[str, Mapping[str, DataType]] = {
    "debezium-json": _DEBEZIUM_METADATA,
    "canal-json": {
        "value.database": STRING,
        "value.table": STRING,
        "value.sql-type": Map(STRING, INT),
        "value.pk-names": Array(STRING),
        "value.ingestion-timestamp": TimestampLtz(3),
        "value.event-timestamp": TimestampLtz(3),
    },
    "maxwell-json": {
        "value.database": STRING,
        "value.table": STRING,
        "value.primary-key-columns": Array(STRING),
        "value.ingestion-timestamp": TimestampLtz(3),
    },
    "ogg-json": {
        "value.table": STRING,
        "value.primary-keys": Array(STRING),
        "value.ingestion-timestamp": TimestampLtz(6),
        "value.event-timestamp": TimestampLtz(6),
    },
}
"""The metadata that the records of a format have themselves."""

_WIDER = {("BIGINT", "INT"), ("STRING", "INT"), ("STRING", "BIGINT")}
"""Types that a column may have, instead of the type of its metadata."""


def timestamps_in_zone(clauses: Sequence[ColumnClause], zone: str) -> tuple[ColumnClause, ...]:
    """Return the columns of a table, where a METADATA timestamp without a zone is computed from the instant that Kafka
    keeps.

    In UTC both are the same, and the column is left as it is.
    """
    rewritten: list[ColumnClause] = []
    for clause in clauses:
        kind = clause.type
        if zone == "UTC" or clause.metadata != "timestamp" or kind is None or kind.this != exp.DType.TIMESTAMP:
            rewritten.append(clause)
            continue
        hidden = Name(INTERNAL + clause.name.text, clause.name.at)
        instant = exp.DataType(this=exp.DType.TIMESTAMPLTZ, expressions=[exp.Literal.number(3)])
        column = exp.Column(this=exp.Identifier(this=hidden.text, quoted=True))
        rewritten.append(replace(clause, name=hidden, type=instant))
        rewritten.append(ColumnClause(name=clause.name, expression=exp.Cast(this=column, to=kind)))
    return tuple(rewritten)


def check_metadata(key: str, kind: DataType, connector: Connector) -> None:
    """Check that the connector knows `key`, and that its type fits. Raises SqlError otherwise."""
    if connector.kind not in ("kafka", "upsert-kafka", "unknown"):
        raise SqlError(f"connector '{connector.kind}' has no metadata")
    form = connector.value_format.kind if connector.value_format is not None else ""
    known = {**_METADATA, **METADATA_OF_FORMATS.get(form, {})}
    if key not in known:
        others = [name for name, keys in METADATA_OF_FORMATS.items() if key in keys]
        formats = " or ".join(f"'{name}'" for name in others)
        raise SqlError(
            f"metadata '{key}' does not exist" + (" in this format" if others else ""),
            detail=f"it comes with 'format' = {formats}" if others else f"there is {', '.join(known)}",
            hint=did_you_mean(key, known),
        )
    wanted = known[key]
    both_times = isinstance(kind, Timestamp | TimestampLtz) and isinstance(wanted, TimestampLtz)
    if not both_times and kind != wanted and (flink(kind), flink(wanted)) not in _WIDER:
        raise SqlError(f"metadata '{key}' is {flink(wanted)}, not {flink(kind)}", hint=f"declare it as {flink(wanted)}")
