"""JSON whose records name their schema by its id in a registry (`json-registry`), as Confluent's JSON Schema serializer
writes them. The schema is not needed to read them: the columns of the table say what is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.contract import DeadLetter
from service.formats.framing import HEADER, LONGEST, UNFRAMED, header, schema_id
from service.formats.json.parse import Fields
from service.formats.json.part import JsonReader, JsonWriter
from service.formats.record_parts import Part
from service.plan.table import Format
from service.plan.types import Array, DataType, Decimal, Map, Row, Simple

_PLAIN = {
    "BOOLEAN": "boolean",
    "TINYINT": "integer",
    "SMALLINT": "integer",
    "INT": "integer",
    "BIGINT": "integer",
    "FLOAT": "number",
    "DOUBLE": "number",
}


class RegisteredJsonReader:
    """Reads the members of objects behind the id of their schema. Picklable."""

    def __init__(self, part: Part, form: Format) -> None:
        self._reader = JsonReader(Fields(part.names, part.types), form)

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return a column for each member, NULL where there is no value or none that can be read; `bad` grows."""
        whole = values.cast(pa.binary())
        framed = pc.and_(
            pc.equal(pc.binary_slice(whole, 0, 1), pa.scalar(b"\0", pa.binary())),
            pc.greater_equal(pc.binary_length(whole), HEADER),
        )
        unframed = pc.fill_null(pc.invert(framed), False)
        bad.update(dict.fromkeys(map(int, np.flatnonzero(unframed.to_numpy())), DeadLetter("bad-json", UNFRAMED)))
        texts = pc.if_else(framed, pc.binary_slice(whole, HEADER, LONGEST), pa.scalar(None, pa.binary()))
        return self._reader.read(texts, sql, bad)


class RegisteredJsonWriter:
    """Writes objects behind the id of their schema, which is that of the columns. Picklable."""

    def __init__(self, part: Part, form: Format, place: Mapping[int, str]) -> None:
        self.expression = JsonWriter(part, form, place).expression
        self._part = part
        self._form = form

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the bytes of each row."""
        before = header(schema_id(self._form, json_schema(self._part), "JSON"))
        parts = (pa.scalar(before, pa.binary()), column.cast(pa.binary()), pa.scalar(b"", pa.binary()))
        return pc.binary_join_element_wise(*parts)


def json_schema(part: Part) -> str:
    """Return the JSON Schema of an object of these columns."""
    made = _object(part.names, part.types, part.nullable())
    document = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Record", **made}
    return json.dumps(document, separators=(",", ":"))


def register_json(part: Part, form: Format) -> None:
    """Ask for the id of the schema in which a part is written, so that what is wrong is known before rows are."""
    schema_id(form, json_schema(part), "JSON")


def _object(names: tuple[str, ...], types: tuple[DataType, ...], nullable: tuple[bool, ...]) -> dict[str, Any]:
    members = {
        name: {"oneOf": [{"type": "null"}, _schema(type_)]} if may_be_null else _schema(type_)
        for name, type_, may_be_null in zip(names, types, nullable, strict=True)
    }
    required = [name for name, may_be_null in zip(names, nullable, strict=True) if not may_be_null]
    return {"type": "object", "properties": members, **({"required": required} if required else {})}


def _schema(type_: DataType) -> dict[str, Any]:
    match type_:
        case Simple(name) if name in ("FLOAT", "DOUBLE"):
            return {"type": ["number", "string"]}  # "NaN", "Infinity"
        case Simple(name) if name in _PLAIN:
            return {"type": _PLAIN[name]}
        case Decimal():
            return {"type": "number"}
        case Array(element):
            return {"type": "array", "items": {"oneOf": [{"type": "null"}, _schema(element)]}}
        case Map(_, value):
            return {"type": "object", "additionalProperties": {"oneOf": [{"type": "null"}, _schema(value)]}}
        case Row(names, types):
            return _object(names, types, (True,) * len(names))
        case _:
            return {"type": "string"}
