"""Schema resolution: which node reads what a writer's schema has into the columns of a table.

The rules are those of the specification (section "Schema Resolution"), with the table's columns as the reader's schema:
fields meet by name, int becomes long, float and double, string and bytes become each other, an item of a union counts
by itself. Beyond them an enum or a UUID is taken as a text, a fixed as BYTES, and TIMESTAMP and TIME follow the unit
that the writer names, which Flink does not look at. What cannot be resolved is no error of the schema as a whole: a
record that has it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from service.formats.avro import values
from service.formats.avro.binary import written
from service.formats.avro.cursor import Cursor
from service.formats.avro.nested_nodes import ListColumn, ListNode, MapColumn, RecordNode, RecursiveNode, nothing
from service.formats.avro.nodes import (
    BooleanNode,
    BytesNode,
    EnumerationNode,
    FixedNode,
    FloatNode,
    IntegerNode,
    MismatchNode,
    Node,
    NullNode,
    UnionNode,
)
from service.formats.avro.schema import (
    Enumeration,
    Fixed,
    ListOf,
    Logical,
    MapOf,
    Member,
    ParsedSchema,
    Primitive,
    Record,
    Reference,
    Schema,
    UnionOf,
)
from service.formats.avro.skipping import Skipper
from service.formats.record_parts import Part
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
    arrow,
    flink,
)

_FROM_INT = ("INT", "BIGINT", "FLOAT", "DOUBLE", "TINYINT", "SMALLINT")
_FROM_LONG = ("BIGINT", "FLOAT", "DOUBLE")
_STRING = Primitive("string")


class _CannotTake(Exception):
    """The column has another type than what the writer wrote."""


@dataclass(slots=True)
class Resolver:
    """Makes the node that reads records of `writer`; `reader` is the schema in which the table's columns may have
    aliases and defaults, if there is one."""

    writer: ParsedSchema
    reader: ParsedSchema | None = None
    _open: set[str] = field(default_factory=set)

    def top(self, part: Part) -> Node:
        """Return the node of a whole key or value. Of one that is no record, the part's only column takes it."""
        root = self._record_of(self.writer.root)
        wanted = Row(part.names, part.types)
        if root is None and len(part.types) == 1:
            return self._node(self.writer.root, part.types[0], None, part.names[0])
        return self._node(self.writer.root, wanted, self.reader.root if self.reader else None, "")

    def _record_of(self, schema: Schema) -> Record | None:
        schema = self.writer.resolved(schema)
        if isinstance(schema, UnionOf):
            return next((r for b in schema.branches if (r := self._record_of(b)) is not None), None)
        return schema if isinstance(schema, Record) else None

    def _node(self, schema: Schema, type_: DataType, reader: Schema | None, name: str) -> Node:
        schema = self.writer.resolved(schema)
        if isinstance(schema, UnionOf):
            return UnionNode(tuple(self._node(branch, type_, reader, name) for branch in schema.branches))
        if schema == Primitive("null"):
            return NullNode(arrow(type_))
        try:
            return self._taken(schema, type_, reader, name)
        except _CannotTake:
            what = f'column "{name}" is {flink(type_)}' if name else "the table has columns"
            why = f"{what}, but the schema of the record has {described(schema)}"
            return MismatchNode(self._skipped(schema), arrow(type_), why)

    def _taken(self, schema: Schema, type_: DataType, reader: Schema | None, name: str) -> Node:
        match schema, type_:
            case Primitive("boolean"), Simple("BOOLEAN"):
                return BooleanNode()
            case Primitive("int" | "long"), _:
                return self._integer(schema, type_)
            case Primitive("float"), Simple("FLOAT" | "DOUBLE"):
                return FloatNode("<f4", arrow(type_))
            case Primitive("double"), Simple("DOUBLE"):
                return FloatNode("<f8", arrow(type_))
            case Primitive("bytes" | "string"), _:
                return BytesNode(self._bytes(schema.logical, type_))
            case Fixed(size=16, logical=Logical("uuid")), Simple("STRING") | Text():
                return FixedNode(16, values.hexadecimal)
            case Fixed(), Simple("BYTES") | Binary() | Decimal():
                return FixedNode(schema.size, self._bytes(schema.logical, type_))
            case Enumeration(), Simple("STRING") | Text():
                return EnumerationNode(schema.symbols)
            case ListOf(items), Array(element):
                item = self._node(items, element, self._inside(reader, ListOf), name)
                return self._list(item, items, Skipper(items, self.writer), ListColumn(arrow(type_)))
            case MapOf(inner), Map(key) if key == Simple("STRING") or isinstance(key, Text):
                return self._map(inner, key, type_, reader, name)
            case Record(), Row(names, types):
                return self._record(schema, names, types, reader, name)
            case _:
                raise _CannotTake

    @staticmethod
    def _integer(schema: Primitive, type_: DataType) -> Node:
        narrow = schema.name == "int"
        logical = schema.logical.name if schema.logical else ""
        match type_:
            case Simple(name) if name in (_FROM_INT if narrow else _FROM_LONG):
                return IntegerNode(values.integers(type_), narrow)
            case Simple("DATE") if narrow and logical in ("date", ""):
                return IntegerNode(values.dates, narrow)
            case Time() if narrow and logical in ("time-millis", ""):
                return IntegerNode(values.times(1000), narrow)
            case Time() if not narrow and logical in ("time-micros", ""):
                return IntegerNode(values.times(1), narrow)
            case Timestamp(precision) | TimestampLtz(precision) if not narrow:
                own = "timestamp-millis" if precision <= 3 else "timestamp-micros"
                unit = logical.removeprefix("local-") or own
                if unit in ("timestamp-millis", "timestamp-micros", "timestamp-nanos"):
                    return IntegerNode(values.timestamps(unit, precision))
        raise _CannotTake

    @staticmethod
    def _bytes(logical: Logical | None, type_: DataType) -> values.OfBytes:
        match type_:
            case Simple("STRING") | Text():
                return values.text
            case Simple("BYTES") | Binary():
                return values.plain_bytes
            case Decimal() if logical is not None and logical.name == "decimal" and logical.scale <= type_.scale:
                return values.decimals(type_, logical.scale)
            case _:
                raise _CannotTake

    def _list(
        self, item: Node, items: Schema, skipper: Skipper, column: ListColumn | MapColumn | None, more: int = 0
    ) -> ListNode:
        smallest = more + _smallest(self.writer.resolved(items), self.writer)
        return ListNode(item, skipper, smallest, column or nothing)

    def _map(self, inner: Schema, key: DataType, type_: Map, reader: Schema | None, name: str) -> Node:
        value = type_.value
        entry = RecordNode(
            (BytesNode(values.text), self._node(inner, value, self._inside(reader, MapOf), name)),
            (0, 1),
            (),
            ("key", "value"),
            (arrow(key), arrow(value)),
        )
        skipper = Skipper(Record("", (Member("key", _STRING), Member("value", inner))), self.writer)
        return self._list(entry, inner, skipper, MapColumn(arrow(type_)), more=1)

    def _record(
        self, schema: Record, names: Sequence[str], types: Sequence[DataType], reader: Schema | None, path: str
    ) -> RecordNode:
        known = self._members_of_reader(reader)
        source = {name: self._found(schema, name, known.get(name)) for name in names}
        nodes: list[Node] = []
        columns: list[int] = []
        for number, member in enumerate(schema.members):
            column = next((i for i, name in enumerate(names) if source[name] == number), -1)
            columns.append(column)
            if column < 0:
                nodes.append(self._skipped(member.schema))
            else:
                own = known.get(names[column])
                inside = f"{path}.{names[column]}" if path else names[column]
                nodes.append(self._node(member.schema, types[column], own.schema if own else None, inside))
        missing = tuple(
            (i, self._default(known.get(name), types[i])) for i, name in enumerate(names) if source[name] is None
        )
        return RecordNode(tuple(nodes), tuple(columns), missing, tuple(names), tuple(map(arrow, types)))

    @staticmethod
    def _found(schema: Record, name: str, own: Member | None) -> int | None:
        """Which field of the writer is that of the reader's `name`."""
        for wanted in (name, *(own.aliases if own else ())):
            for number, member in enumerate(schema.members):
                if member.name == wanted:
                    return number
        return None

    def _default(self, own: Member | None, type_: DataType) -> pa.Array:
        """The value of a column that the writer does not have."""
        if own is None or not own.defaulted or self.reader is None:
            return pa.nulls(1, arrow(type_))
        data = written(own.schema, self.reader, own.default)
        node = Resolver(self.reader)._node(own.schema, type_, None, own.name)
        cursor = Cursor(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]), len(data))
        return node.read(cursor, cursor.places())

    def _members_of_reader(self, reader: Schema | None) -> Mapping[str, Member]:
        record = self._inside(reader, Record)
        return {member.name: member for member in record.members} if isinstance(record, Record) else {}

    def _inside(self, reader: Schema | None, kind: type[Record] | type[ListOf] | type[MapOf]) -> Schema | None:
        """The record that a reader's schema is, or what its array or map holds; through unions."""
        if reader is None or self.reader is None:
            return None
        reader = self.reader.resolved(reader)
        if isinstance(reader, UnionOf):
            return next((f for b in reader.branches if (f := self._inside(b, kind)) is not None), None)
        if not isinstance(reader, kind):
            return None
        return reader.items if isinstance(reader, ListOf) else reader.values if isinstance(reader, MapOf) else reader

    def _skipped(self, schema: Schema) -> Node:
        """A node that only passes over `schema`."""
        if isinstance(schema, Reference) and schema.name in self._open:
            return RecursiveNode(Skipper(schema, self.writer))
        schema = self.writer.resolved(schema)
        match schema:
            case Primitive("null"):
                return NullNode(pa.null())
            case Primitive("boolean"):
                return BooleanNode()
            case Primitive("int" | "long"):
                return IntegerNode(values.dates)
            case Primitive("float" | "double" as name):
                return FloatNode("<f4" if name == "float" else "<f8", pa.float64())
            case Primitive():
                return BytesNode(values.plain_bytes)
            case Fixed():
                return FixedNode(schema.size, values.plain_bytes)
            case Enumeration():
                return EnumerationNode(schema.symbols)
            case UnionOf():
                return UnionNode(tuple(map(self._skipped, schema.branches)))
            case ListOf(items):
                return self._list(self._skipped(items), items, Skipper(items, self.writer), None)
            case MapOf(inner):
                record = Record("", (Member("key", _STRING), Member("value", inner)))
                return self._list(self._skipped(record), inner, Skipper(record, self.writer), None, more=1)
            case Record():
                inner_of = self._open | {schema.name}
                nodes = tuple(Resolver(self.writer, None, inner_of)._skipped(m.schema) for m in schema.members)
                return RecordNode(nodes, (-1,) * len(nodes), (), (), ())
            case Reference():
                raise AssertionError("references are resolved")


def longest_fixed(document: ParsedSchema) -> int:
    """Return the bytes of the largest fixed of a schema, named or not."""
    return max((schema.size for schema in document.named.values() if isinstance(schema, Fixed)), default=0)


def described(schema: Schema) -> str:
    """Return how a message names a schema."""
    match schema:
        case Primitive(name, logical) if logical is not None:
            return f"{name} ({_words(logical)})"
        case Primitive(name):
            return name
        case Fixed():
            return f"fixed({schema.size})" + (f" ({_words(schema.logical)})" if schema.logical else "")
        case Enumeration():
            return "an enum"
        case ListOf():
            return "an array"
        case MapOf():
            return "a map"
        case Record(name):
            return f"the record {name}"
        case _:
            return "a union"


def _words(logical: Logical) -> str:
    return f"decimal({logical.precision}, {logical.scale})" if logical.name == "decimal" else logical.name


def _smallest(schema: Schema, document: ParsedSchema, depth: int = 0) -> int:
    """The fewest bytes of a value; 0 or 1 where it would be long to find out."""
    match schema:
        case Primitive("null"):
            return 0
        case Primitive("float"):
            return 4
        case Primitive("double"):
            return 8
        case Fixed():
            return schema.size
        case Record() if depth > 4:
            return 0
        case Record():
            return sum(_smallest(document.resolved(m.schema), document, depth + 1) for m in schema.members)
        case _:
            return 1
