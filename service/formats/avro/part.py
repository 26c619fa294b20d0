"""Avro as the form of a record's key or value, with a schema registry (`avro-confluent`) or without one (`avro`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from operators.sql import Sql
from service.formats.avro.cursor import Cursor
from service.formats.avro.derive import derived, envelope
from service.formats.avro.encode import encode
from service.formats.avro.nested_nodes import RecordNode
from service.formats.avro.nodes import Node, UnionNode
from service.formats.avro.resolve import Resolver, longest_fixed
from service.formats.avro.schema import AvroSchemaError, ParsedSchema, Record, UnionOf, parse_schema
from service.formats.by_schema import read_by_schema
from service.formats.cells import constant, joined
from service.formats.contract import DeadLetter
from service.formats.framing import HEADER, UNFRAMED, header, schema_id, schema_ids
from service.formats.json.options import flag
from service.formats.not_encodable import NotEncodable, all_rows
from service.formats.record_parts import Part
from service.formats.row_structs import rows_of, struct_text
from service.formats.varints import Ints, Octets
from service.plan.table import Format
from service.plan.types import arrow
from service.schema_registry.client import registry
from service.schema_registry.errors import UnknownSchema
from service.schema_registry.registry_settings import registry_settings

LEFT_OVER = "the record has more bytes than its schema has values"


class AvroReader:
    """Reads the columns of a part out of records. Picklable: schemas are resolved where records are read.

    `whole` are all columns of the key or value, whose schema is that of records without an id.
    """

    def __init__(self, part: Part, form: Format, whole: Part) -> None:
        self._part = part
        self._form = form
        self._whole = whole
        self._nodes: dict[int, tuple[Node, int] | DeadLetter] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_nodes": {}}

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return a column for each wanted one, NULL where there is no value or none that can be read; `bad` grows."""

        def groups(data: Octets, starts: Ints, ends: Ints, present: Ints) -> list[tuple[int, Ints]]:
            return self._by_schema(data, starts, ends, present, bad)

        return read_by_schema(values, self._part.types, groups, self._read_group, bad)

    def _read_group(
        self, number: int, data: Any, starts: Ints, ends: Ints
    ) -> tuple[list[pa.Array], dict[int, DeadLetter]] | DeadLetter:
        """The records of one schema."""
        node = self._node(number)
        if isinstance(node, DeadLetter):
            return node
        if number < 0:
            return _read(node, data, starts, ends, self._part)
        columns, wrong = _read(node, data, starts + HEADER, ends, self._part)
        return columns, {place: r._replace(detail=f"schema {number}: {r.detail}") for place, r in wrong.items()}

    def _by_schema(
        self, data: Any, starts: Ints, ends: Ints, present: Ints, bad: dict[int, DeadLetter]
    ) -> list[tuple[int, Ints]]:
        """The records of each schema; -1 is that of the table."""
        if "url" not in self._form.registry:
            return [(-1, present)]
        ids, framed = schema_ids(data, starts[present], ends[present])
        bad.update(dict.fromkeys(map(int, present[~framed]), DeadLetter("bad-avro", UNFRAMED)))
        present, ids = present[framed], ids[framed]
        return [(int(number), present[ids == number]) for number in np.unique(ids)]

    def _node(self, number: int) -> tuple[Node, int] | DeadLetter:
        if number not in self._nodes:
            try:
                self._nodes[number] = self._resolved(number)
            except UnknownSchema as error:
                return DeadLetter("unknown-schema", str(error))  # which may be there the next time
            except AvroSchemaError as error:
                self._nodes[number] = DeadLetter("unknown-schema", f"schema {number}: {error}")
        return self._nodes[number]

    def _resolved(self, number: int) -> tuple[Node, int]:
        given = self._form.options.get("schema")
        if number < 0:
            document = parse_schema(given or schema_text(self._whole, self._form))
        else:
            found = registry(registry_settings(self._form.registry)).schema(number)
            if found.kind != "AVRO":
                raise AvroSchemaError(f"it is a schema of {found.kind}, not of Avro")
            document = parse_schema(found.text, tuple(dict.fromkeys(each.text for each in found.references)))
        reader = None if given is None else parse_schema(given)
        return Resolver(document, reader).top(self._part), longest_fixed(document)


class AvroWriter:
    """Writes records of the columns of a part. Picklable: the schema's id is asked for where rows are written.

    With `enveloped`, what is written is the row as it stands within the record of a change, behind the id.
    """

    def __init__(self, part: Part, form: Format, place: Mapping[int, str], *, enveloped: bool = False) -> None:
        self._part = part
        self._form = form
        self._enveloped = enveloped
        self.expression = struct_text(part, place)

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the bytes of each row. Raises NotEncodable for rows that the schema cannot hold."""
        text = schema_text(self._part, self._form, enveloped=self._enveloped)
        document = parsed(text)
        rows = rows_of(self._part, column)
        root = row_of_envelope(document) if self._enveloped else document.root
        if "url" not in self._form.registry:
            return encode(root, document, rows, all_rows(len(rows))).binary()
        number = schema_id(self._form, text, "AVRO")
        try:
            cells = encode(root, document, rows, all_rows(len(rows)))
        except NotEncodable as error:
            raise error.of_schema(number) from error
        return joined([constant(header(number), len(rows)), cells]).binary()


def schema_text(part: Part, form: Format, *, enveloped: bool = False) -> str:
    """Return the schema in which the columns of a part are written: what the options say, or what the columns make."""
    given = form.options.get("schema")
    if given is not None:
        return given
    made = (envelope if enveloped else derived)(
        part.names, part.types, part.nullable(), legacy=flag(form, "timestamp_mapping.legacy", default=True)
    )
    return json.dumps(made, separators=(",", ":"))


@cache
def parsed(text: str) -> ParsedSchema:
    """Return a schema, read once."""
    return parse_schema(text)


def row_of_envelope(document: ParsedSchema) -> Record:
    """Return the record of a row within that of a change. Raises AvroSchemaError where there is none."""
    root = document.resolved(document.root)
    members = {m.name: m.schema for m in root.members} if isinstance(root, Record) else {}
    after = document.resolved(members["after"]) if "after" in members else None
    branches = after.branches if isinstance(after, UnionOf) else ()
    found = next((r for b in branches if isinstance(r := document.resolved(b), Record)), None)
    if found is None or tuple(members) != ("before", "after", "op"):
        raise AvroSchemaError("the schema of changes is a record of before, after and op")
    return found


def check_writable(part: Part, form: Format, *, enveloped: bool = False) -> None:
    """Raise AvroSchemaError or NoAvroType where the columns cannot be written in the form's schema."""
    document = parse_schema(schema_text(part, form, enveloped=enveloped))
    empty = pa.StructArray.from_arrays(
        [pa.nulls(0, arrow(t)) for t in part.types],
        fields=[pa.field(n, arrow(t)) for n, t in zip(part.names, part.types, strict=True)],
    )
    encode(row_of_envelope(document) if enveloped else document.root, document, empty, all_rows(0))


def register(part: Part, form: Format, *, enveloped: bool = False) -> None:
    """Ask for the id of the schema in which a part is written, so that what is wrong is known before rows are."""
    schema_id(form, schema_text(part, form, enveloped=enveloped), "AVRO")


def _read(
    node: tuple[Node, int], data: Any, starts: Ints, ends: Ints, part: Part
) -> tuple[list[pa.Array], dict[int, DeadLetter]]:
    """The columns of a part out of records of one schema, and what is wrong with some of them."""
    root, longest = node
    cursor = Cursor(data, starts, ends, longest)
    places = cursor.places()
    columns = _columns(root, cursor, places, part)
    left = places.at != places.end
    if cursor.wrong:
        left &= ~cursor.failed
    if left.any():
        cursor.fail(places, left, LEFT_OVER)
    return columns, cursor.wrong


def _columns(root: Node, cursor: Cursor, places: Any, part: Part) -> list[pa.Array]:
    if isinstance(root, RecordNode):
        return root.fields(cursor, places)
    found = root.read(cursor, places)
    if isinstance(root, UnionNode) and any(isinstance(each, RecordNode) for each in root.branches):
        return list(found.flatten())
    return [found] if len(part.types) == 1 else list(found.flatten())
