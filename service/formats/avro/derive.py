"""The Avro schema of a table's columns: what Flink derives, name by name, so that both can write to one subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from service.plan.types import (
    Array,
    Binary,
    DataType,
    Decimal,
    Map,
    Row,
    Simple,
    Text,
    Time,
    Timestamp,
    TimestampLtz,
    flink,
)

RECORD = "org.apache.flink.avro.generated.record"
"""The name that Flink gives to the record of a table. Registries compare names."""

_PLAIN = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
}


class NoAvroType(Exception):
    """A SQL type that Avro cannot carry; the text says why."""


def derived(
    names: Sequence[str], types: Sequence[DataType], nullable: Sequence[bool], *, legacy: bool, name: str = RECORD
) -> dict[str, Any]:
    """Return the schema of a record of these columns, as JSON has it. With `legacy`, a TIMESTAMP is a timestamp of UTC,
    as it was in Flink before 1.19, not a local timestamp. Raises NoAvroType for a type that Avro cannot carry.

    >>> from service.plan.types import BIGINT, STRING
    >>> derived(["name", "n"], [STRING, BIGINT], [False, True], legacy=False)["fields"]
    [{'name': 'name', 'type': 'string'}, {'name': 'n', 'type': ['null', 'long'], 'default': None}]
    """
    fields: list[dict[str, Any]] = []
    for column, type_, may_be_null in zip(names, types, nullable, strict=True):
        schema = _schema(type_, f"{name}_{column}", legacy)
        if may_be_null:
            fields.append({"name": column, "type": ["null", schema], "default": None})
        else:
            fields.append({"name": column, "type": schema})
    return {
        "type": "record",
        "name": name.rpartition(".")[2],
        "namespace": name.rpartition(".")[0],
        "fields": fields,
    }


def envelope(names: Sequence[str], types: Sequence[DataType], nullable: Sequence[bool], *, legacy: bool) -> Any:
    """Return the schema of Debezium's record of a change: the row before, the row after, the operation."""
    sides: list[dict[str, Any]] = [
        {
            "name": side,
            "type": ["null", derived(names, types, nullable, legacy=legacy, name=f"{RECORD}_{side}")],
            "default": None,
        }
        for side in ("before", "after")
    ]
    operation = {"name": "op", "type": ["null", "string"], "default": None}
    return {
        "type": "record",
        "name": RECORD.rpartition(".")[2],
        "namespace": RECORD.rpartition(".")[0],
        "fields": [*sides, operation],
    }


def _schema(type_: DataType, name: str, legacy: bool) -> Any:
    match type_:
        case Simple("DATE"):
            return {"type": "int", "logicalType": "date"}
        case Simple(kind) if kind in _PLAIN:
            return _PLAIN[kind]
        case Text():
            return "string"
        case Binary():
            return "bytes"
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Time(precision):
            if precision > 3:
                return {"type": "long", "logicalType": "time-micros"}
            return {"type": "int", "logicalType": "time-millis"}
        case Timestamp(precision):
            return {"type": "long", "logicalType": ("" if legacy else "local-") + _unit(precision)}
        case TimestampLtz(precision):
            return {"type": "long", "logicalType": _unit(precision)}
        case Array(element):
            return {"type": "array", "items": ["null", _schema(element, name, legacy)]}
        case Map(key, value):
            if not (key == Simple("STRING") or isinstance(key, Text)):
                raise NoAvroType(f"the keys of a map are texts in Avro, not {flink(key)}")
            return {"type": "map", "values": ["null", _schema(value, name, legacy)]}
        case Row(names, types):
            return derived(names, types, [True] * len(names), legacy=legacy, name=name)
        case _:
            raise NoAvroType(f"Avro has no type for {flink(type_)}")


def _unit(precision: int) -> str:
    return "timestamp-millis" if precision <= 3 else "timestamp-micros"
