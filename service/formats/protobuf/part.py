"""Protocol Buffers as the form of a record's key or value, with a schema registry (`protobuf-confluent`) or without one
(`protobuf`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from operators.sql import Sql
from service.formats.by_schema import read_by_schema
from service.formats.cells import constant, joined, signed
from service.formats.contract import DeadLetter
from service.formats.framing import HEADER, UNFRAMED, header, schema_id, schema_ids
from service.formats.json.options import flag
from service.formats.not_encodable import NotEncodable, all_rows
from service.formats.protobuf.encode import MessageEncoder
from service.formats.protobuf.nodes import MessageFields
from service.formats.protobuf.resolve import MessageResolver
from service.formats.protobuf.schemas.chosen import given, given_message, given_schema
from service.formats.protobuf.schemas.compiler import compiled
from service.formats.protobuf.schemas.derive import RECORD, derived
from service.formats.protobuf.schemas.fit import Misfit
from service.formats.protobuf.schemas.schema import ProtobufMessage, ProtobufSchema, ProtobufSchemaError
from service.formats.protobuf.wire import MessageBlock
from service.formats.record_parts import Part
from service.formats.row_structs import rows_of, struct_text
from service.formats.varints import PADDING, Ints, Octets, numbers, words_of, zigzag
from service.plan.table import Format
from service.plan.types import arrow
from service.schema_registry.client import registry
from service.schema_registry.errors import UnknownSchema
from service.schema_registry.registry_settings import registry_settings

Writer = tuple[int, tuple[int, ...]]
"""The id of a schema, and the path of a message in it. An id of -1 is the schema of the table."""

NO_PATH = "the path of the record's message in its schema cannot be read"

_DEEPEST = 32
"""The nesting depth to which records can be told apart; more is taken for bytes that are none of ours."""


class ProtobufReader:
    """Reads the columns of a part out of records. Picklable: schemas are resolved where records are read."""

    def __init__(self, part: Part, form: Format) -> None:
        self._part = part
        self._form = form
        self._fields: dict[Writer, MessageFields | DeadLetter] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fields": {}}

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return a column for each wanted one, NULL where there is no value or none that can be read; `bad` grows."""

        def groups(data: Octets, starts: Ints, ends: Ints, present: Ints) -> list[tuple[tuple[Writer, int], Ints]]:
            return self._by_schema(data, starts, ends, present, bad)

        return read_by_schema(values, self._part.types, groups, self._read_group, bad)

    def _by_schema(
        self, data: Octets, starts: Ints, ends: Ints, present: Ints, bad: dict[int, DeadLetter]
    ) -> list[tuple[tuple[Writer, int], Ints]]:
        """Return the records of each message, and how many bytes are in front of it."""
        if "url" not in self._form.registry:
            return [(((-1, ()), 0), present)]
        ids, framed = schema_ids(data, starts[present], ends[present])
        bad.update(dict.fromkeys(map(int, present[~framed]), DeadLetter("bad-protobuf", UNFRAMED)))
        present, ids = present[framed], ids[framed]
        found: list[tuple[tuple[Writer, int], Ints]] = []
        for path, size, rows in _by_path(data, starts[present] + HEADER, ends[present]):
            if path is None:
                bad.update(dict.fromkeys(map(int, present[rows]), DeadLetter("bad-protobuf", NO_PATH)))
                continue
            mine = ids[rows]
            for number in np.unique(mine):
                found.append((((int(number), path), HEADER + size), present[rows[mine == number]]))
        return found

    def _read_group(
        self, group: tuple[Writer, int], data: Octets, starts: Ints, ends: Ints
    ) -> tuple[list[pa.Array], dict[int, DeadLetter]] | DeadLetter:
        writer, skipped = group
        fields = self._resolved(writer)
        if isinstance(fields, DeadLetter):
            return fields
        block = MessageBlock(data, starts + skipped, ends)
        columns = fields.columns(block, block.records())
        if writer[0] < 0:
            return columns, block.wrong
        return columns, {
            place: found._replace(detail=f"schema {writer[0]}: {found.detail}") for place, found in block.wrong.items()
        }

    def _resolved(self, writer: Writer) -> MessageFields | DeadLetter:
        if writer not in self._fields:
            try:
                self._fields[writer] = self._found(writer)
            except UnknownSchema as error:
                return DeadLetter("unknown-schema", str(error))  # which may be there the next time
            except Misfit as error:
                self._fields[writer] = DeadLetter("schema-mismatch", f"schema {writer[0]}: {error}")
            except ProtobufSchemaError as error:
                self._fields[writer] = DeadLetter("unknown-schema", f"schema {writer[0]}: {error}")
        return self._fields[writer]

    def _found(self, writer: Writer) -> MessageFields:
        number, path = writer
        defaults = flag(self._form, "read-default-values")
        if number < 0:
            schema, message = written_as(self._part, self._form)
            return MessageResolver(schema, defaults, strict=True).fields(message, self._part.names, self._part.types)
        found = registry(registry_settings(self._form.registry)).schema(number)
        if found.kind != "PROTOBUF":
            raise ProtobufSchemaError(f"it is a schema of {found.kind}, not of Protocol Buffers")
        schema = compiled(found.text, tuple((each.name, each.text) for each in found.references))
        return MessageResolver(schema, defaults).fields(schema.at(path), self._part.names, self._part.types)


def _by_path(data: Octets, starts: Ints, ends: Ints) -> list[tuple[tuple[int, ...] | None, int, Ints]]:
    """Return the paths of messages in front of values, their bytes, and the positions of the values of each: a
    single zero for
    the first message, else the number of positions and the positions, each with its sign. None: it cannot be read."""
    words = words_of(np.concatenate([data, np.zeros(PADDING, dtype=np.uint8)]))
    found: list[tuple[tuple[int, ...] | None, int, Ints]] = []
    first = np.where(starts < ends, words[starts] & np.uint64(0xFF), np.uint64(1))
    simple = np.flatnonzero(first == 0)
    if len(simple):
        found.append(((0,), 1, simple))
    others: dict[tuple[tuple[int, ...] | None, int], list[int]] = {}
    rest = np.flatnonzero(first != 0)
    # The bytes in front of most records are the same: each such beginning is read once.
    known: dict[tuple[int, int], tuple[tuple[int, ...] | None, int]] = {}
    for place, word in zip(rest.tolist(), words[starts[rest]].tolist(), strict=True):
        room = int(ends[place] - starts[place])
        count = (word & 0xFF) >> 1
        short = (word & 0xFF, word & ((1 << (8 * min(count + 1, 8))) - 1)) if room >= 8 and count < 8 else None
        read = known.get(short) if short is not None else None
        if read is None:
            read = _path(words, int(starts[place]), int(ends[place]))
            if short is not None and read[1] == count + 1:
                known[short] = read
        others.setdefault(read, []).append(place)
    return [*found, *((path, size, np.array(places)) for (path, size), places in others.items())]


def _path(words: Any, at: int, end: int) -> tuple[tuple[int, ...] | None, int]:
    place = at
    path: list[int] = []
    count = 1
    while len(path) <= count:
        if place >= end:
            return None, 0
        found = numbers(words, np.array([place]))
        value = int(zigzag(found.values)[0])
        place += int(found.sizes[0])
        if place > end or value < 0:
            return None, 0
        if not path and not 0 < value <= _DEEPEST:
            return None, 0
        count = count if path else value
        path.append(value)
    return tuple(path[1:]), place - at


class ProtobufWriter:
    """Writes records of the columns of a part. Picklable: the schema's id is asked for where rows are written."""

    def __init__(self, part: Part, form: Format, place: Mapping[int, str]) -> None:
        self._part = part
        self._form = form
        self.expression = struct_text(part, place)

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the bytes of each row. Raises NotEncodable for rows that the message cannot hold."""
        rows = rows_of(self._part, column)
        schema, message = written_as(self._part, self._form)
        encoder = _encoder(schema, self._form)
        if "url" not in self._form.registry:
            return encoder.message(message, rows, all_rows(len(rows))).binary()
        number = schema_id(self._form, schema_text(self._part, self._form), "PROTOBUF")
        try:
            cells = encoder.message(message, rows, all_rows(len(rows)))
        except NotEncodable as error:
            raise error.of_schema(number) from error
        front = header(number) + path_bytes(schema.path(message.name))
        return joined([constant(front, len(rows)), cells]).binary()


def path_bytes(path: Sequence[int]) -> bytes:
    """Return the path of a message as it stands in front of a value.

    >>> path_bytes((0,)).hex(), path_bytes((1, 0)).hex()  # the first message; the first one inside the second
    ('00', '040200')
    """
    if tuple(path) == (0,):
        return b"\0"
    return signed(np.array([len(path), *path], np.int64)).data.tobytes()


def schema_text(part: Part, form: Format) -> str:
    """Return the .proto file that is written by: what the options say, or what the columns make."""
    return form.options.get("schema") or derived(part.names, part.types, part.nullable())


def written_as(part: Part, form: Format) -> tuple[ProtobufSchema, ProtobufMessage]:
    """Return the schema and the message that a part is written as, and read as where records do not name theirs. Raises
    ProtobufSchemaError."""
    if not given(form.options):
        schema = compiled(schema_text(part, form))
        return schema, schema.named(RECORD)
    schema = given_schema(form.options)
    return schema, given_message(schema, form.options)


def check_message_writable(part: Part, form: Format) -> None:
    """Raise ProtobufSchemaError where the columns cannot be written as the form's message."""
    schema, message = written_as(part, form)
    for name, nullable in zip(part.names, part.nullable(), strict=True):
        field = message.field(name)
        if field is not None and field.required and nullable:
            raise ProtobufSchemaError(f'the field "{name}" is required, but its column may be NULL')
    # One row of defaults, so that items of arrays and messages within messages are seen, too.
    empty = pa.StructArray.from_arrays(
        [pa.nulls(0, arrow(t)) for t in part.types],
        fields=[pa.field(n, arrow(t)) for n, t in zip(part.names, part.types, strict=True)],
    )
    _encoder(schema, form).message(message, empty, all_rows(0))


def register_message(part: Part, form: Format) -> None:
    """Ask for the id of the schema in which a part is written, so that what is wrong is known before rows are."""
    schema, message = written_as(part, form)
    schema.path(message.name)
    schema_id(form, schema_text(part, form), "PROTOBUF")


def _encoder(schema: ProtobufSchema, form: Format) -> MessageEncoder:
    return MessageEncoder(schema, form.options.get("write-null-string-literal", ""))
