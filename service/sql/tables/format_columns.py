"""The check whether the formats of a table's keys and values can carry its columns."""

from __future__ import annotations

from service.formats.protobuf.schemas.chosen import check_message, given
from service.formats.protobuf.schemas.schema import ProtobufSchemaError
from service.plan.formats import Family, traits
from service.plan.table import ColumnKind, Format, Table, TableColumn
from service.plan.types import STRING, Array, Binary, DataType, Interval, Map, Row, Simple, Text, Time, flink
from service.sql.errors import Mistakes
from service.sql.parse.statements import CreateTable

_RAW = frozenset({"STRING", "BYTES", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"})


def check_formats(table: Table, statement: CreateTable, mistakes: Mistakes) -> None:
    """Note a mistake for each column that a format cannot carry, and where `raw` has more or less than one."""
    connector = table.connector
    physical = [c for c in table.columns if c.kind is ColumnKind.PHYSICAL]
    if connector.kind == "upsert-kafka":
        keys = [table.columns[i] for i in table.key]
    else:
        keys = [c for c in physical if c.name in connector.key_fields]
    apart = keys if connector.value_fields_include == "EXCEPT_KEY" else []
    values = [c for c in physical if c not in apart]
    for what, option, form, columns in (
        ("key", "key.format", connector.key_format, keys),
        ("value", "value.format", connector.value_format, values),
    ):
        if form is not None and columns:
            given = next((o for o in statement.options if o.key in (option, option.removeprefix("value."))), None)
            _check(what, form, columns, given.value_at if given else statement.name.at, mistakes)


def _check(what: str, form: Format, columns: list[TableColumn], at: int, mistakes: Mistakes) -> None:
    if form.kind == "raw" and len(columns) != 1:
        mistakes.add(
            f"the format raw holds one column, but the {what} has {len(columns)}",
            detail=f"they are {', '.join(c.name for c in columns)}",
            hint="take 'value.fields-include' = 'EXCEPT_KEY' where the key holds the others, or another format",
            at=at,
        )
    if form.kind == "protobuf":
        _check_message(form, columns, at, mistakes)
    family = traits(form).family
    holds = None if form.kind == "protobuf" else _HOLDS.get(family)  # its message has been asked
    for column in columns if holds else ():
        if holds is not None and not holds(column.type):
            mistakes.add(
                f'the format {form.kind} cannot hold column "{column.name}"',
                detail=f"it is {flink(column.type)}",
                hint="write the keys of maps as STRING" if family is Family.AVRO else "take the format json, which can",
                at=at,
            )


def _check_message(form: Format, columns: list[TableColumn], at: int, mistakes: Mistakes) -> None:
    """Whether the message of a format has a field for each column, of a type that fits."""
    if not given(form.options):
        return  # which is a mistake already
    try:
        check_message(form.options, [c.name for c in columns], [c.type for c in columns])
    except ProtobufSchemaError as error:
        mistakes.add(
            "the table and its message do not fit",
            detail=str(error),
            hint="columns have the names of the message's fields; docs/formats.md says which types fit",
            at=at,
        )


def _in_raw(type_: DataType) -> bool:
    return isinstance(type_, Text | Binary) or (isinstance(type_, Simple) and type_.name in _RAW)


def _in_csv(type_: DataType) -> bool:
    inner = type_.element if isinstance(type_, Array) else type_
    return not isinstance(inner, Array | Map | Row | Interval)


def _in_avro(type_: DataType) -> bool:
    match type_:
        case Map(key, value):
            return (isinstance(key, Text) or key == STRING) and _in_avro(value)
        case Array(element):
            return _in_avro(element)
        case Row(_, types):
            return all(map(_in_avro, types))
        case _:
            return not isinstance(type_, Interval)


def _in_protobuf(type_: DataType) -> bool:
    """A list or a map cannot stand directly in another one."""
    match type_:
        case Map(_, value):
            return not isinstance(value, Array | Map) and _in_protobuf(value)
        case Array(element):
            return not isinstance(element, Array | Map) and _in_protobuf(element)
        case Row(_, types):
            return all(map(_in_protobuf, types))
        case _:
            return not isinstance(type_, Interval | Time)


_HOLDS = {Family.RAW: _in_raw, Family.CSV: _in_csv, Family.AVRO: _in_avro, Family.PROTOBUF: _in_protobuf}
"""Whether a value of a type can stand in a record. JSON holds them all."""
