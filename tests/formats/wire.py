"""Records in, rows out, and back: what the tests of every format share."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import OUT, RECORD, Decoded, Decoder
from service.formats.registry import decoder, encoder
from service.plan.table import ColumnKind, Connector, Format, Table, TableColumn
from service.plan.types import DataType, arrow

SQL = Sql()


def table(
    columns: Mapping[str, DataType],
    form: str = "json",
    options: Mapping[str, str] | None = None,
    *,
    kind: str = "kafka",
    key: Sequence[str] = (),
    not_null: Sequence[str] = (),
    metadata: Mapping[str, str] | None = None,
    **connector: Any,
) -> Table:
    """A table of these columns; `metadata` names the columns that are METADATA and their keys."""
    metadata = metadata or {}
    names = list(columns)
    made = Connector(kind, topics=("t",), value_format=Format(form, options or {}), **connector)
    return Table(
        "t",
        tuple(
            TableColumn(
                name,
                type_,
                ColumnKind.METADATA if name in metadata else ColumnKind.PHYSICAL,
                nullable=name not in not_null,
                metadata=metadata.get(name, ""),
            )
            for name, type_ in columns.items()
        ),
        made,
        key=tuple(names.index(k) for k in key),
    )


def records(*values: bytes | str | None, **columns: Sequence[Any]) -> pa.Table:
    """Records with these values, at offsets 0, 1, ... of partition 3 of topic t."""
    count = len(values)
    made: dict[str, Any] = {
        "value": [v.encode() if isinstance(v, str) else v for v in values],
        "topic": ["t"] * count,
        "partition": [3] * count,
        "offset": list(range(count)),
        **columns,
    }
    return pa.table(
        [pa.array(made[f.name], f.type) for f in RECORD if f.name in made],
        names=[*filter(made.__contains__, RECORD.names)],
    )


def decode(source: Table, given: pa.Table, columns: Sequence[int] | None = None) -> Decoded:
    """What a decoder that has been sent to a worker reads; every column unless `columns` says which."""
    made = decoder(source, tuple(range(len(source.columns)) if columns is None else columns))
    sent: Decoder = pickle.loads(pickle.dumps(made))
    return sent.decode(given, SQL)


def rows(source: Table, *values: bytes | str | None, **columns: Sequence[Any]) -> list[Any]:
    """The rows that come out, one value a row for a table of one column, else tuples; each with its weight if not 1."""
    return shown(decode(source, records(*values, **columns)).changes)


def shown(changes: pa.Table) -> list[Any]:
    """Rows as Python values: what stands alone is not wrapped, and a weight is shown unless it is 1."""
    answer: list[Any] = []
    for row in changes.to_pylist():
        *cells, weight = row.values()
        cell = cells[0] if len(cells) == 1 else tuple(cells)
        answer.append(cell if weight == 1 else (weight, cell))
    return answer


def dead(source: Table, *values: bytes | str | None, **columns: Sequence[Any]) -> list[tuple[int, str, str]]:
    """Offset, reason and detail of what could not be read."""
    bad = decode(source, records(*values, **columns)).dead
    return [(r["offset"], r["reason"], r["detail"]) for r in bad.to_pylist()]


def changes(sink: Table, *given: tuple[int, Sequence[Any]]) -> pa.Table:
    """Changes of a sink: weight and row."""
    columns = [pa.array([row[i] for _, row in given], arrow(column.type)) for i, column in enumerate(sink.columns)]
    weights = pa.array([weight for weight, _ in given], pa.int64())
    return pa.table([*columns, weights], names=[*(f"c{i}" for i in range(len(columns))), "_weight"])


def encode(sink: Table, *given: tuple[int, Sequence[Any]], query: str = "q") -> pa.Table:
    """The records that an encoder that has been sent to a worker writes."""
    made = pickle.loads(pickle.dumps(encoder(sink, tuple(range(len(sink.columns))), query)))
    written = made.encode(changes(sink, *given), SQL)
    assert written.schema == OUT
    return written


def values(written: pa.Table) -> list[str | None]:
    """The values of written records, as text."""
    return [None if v is None else v.decode() for v in written["value"].to_pylist()]


def keys(written: pa.Table) -> list[str | None]:
    """The keys of written records, as text."""
    return [None if v is None else v.decode() for v in written["key"].to_pylist()]
