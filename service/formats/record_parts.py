"""The columns of a record's key and of its value, and their names there."""

from __future__ import annotations

from dataclasses import dataclass

from service.plan.table import ColumnKind, Table
from service.plan.types import DataType


@dataclass(frozen=True, slots=True)
class Part:
    """The columns of a key or a value: their indexes in the table, the names they have there, their types, and which of
    them are never NULL."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    required: frozenset[int] = frozenset()

    def only(self, wanted: frozenset[int]) -> Part:
        """Return the part without the columns that are not wanted."""
        kept = [i for i, column in enumerate(self.columns) if column in wanted]
        return Part(
            tuple(self.columns[i] for i in kept),
            tuple(self.names[i] for i in kept),
            tuple(self.types[i] for i in kept),
            self.required,
        )

    def nullable(self) -> tuple[bool, ...]:
        """Return for each column whether it may be NULL."""
        return tuple(column not in self.required for column in self.columns)


def key_part(table: Table) -> Part:
    """Return the columns of the record's key: PRIMARY KEY for upsert-kafka, else 'key.fields'; names without their
    prefix."""
    connector = table.connector
    if connector.kind == "upsert-kafka":
        columns = table.key
    elif connector.key_format is None:
        columns = ()
    else:
        places = {c.name: i for i, c in enumerate(table.columns)}
        columns = tuple(places[name] for name in connector.key_fields)
    names = tuple(table.columns[i].name.removeprefix(connector.key_fields_prefix) for i in columns)
    return Part(columns, names, tuple(table.columns[i].type for i in columns), _required(table))


def value_part(table: Table) -> Part:
    """Return the columns of the record's value: the physical ones, less the key's if 'value.fields-include' is
    EXCEPT_KEY."""
    left_out = key_part(table).columns if table.connector.value_fields_include == "EXCEPT_KEY" else ()
    columns = tuple(i for i, c in enumerate(table.columns) if c.kind is ColumnKind.PHYSICAL and i not in left_out)
    names = tuple(table.columns[i].name for i in columns)
    return Part(columns, names, tuple(table.columns[i].type for i in columns), _required(table))


def _required(table: Table) -> frozenset[int]:
    return frozenset(i for i in range(len(table.columns)) if required(table, i))


def required(table: Table, index: int) -> bool:
    """Return whether a column may not be NULL; a PRIMARY KEY never is."""
    return not table.columns[index].nullable or index in table.key
