"""An Avro schema as values: https://avro.apache.org/docs/1.12.0/specification/, section "Schema Declaration"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class AvroSchemaError(Exception):
    """A text that is no Avro schema, or one that cannot be carried; the text says why."""


@dataclass(frozen=True, slots=True)
class Logical:
    """The meaning of a value: 'date', 'timestamp-millis', 'decimal' with its precision and scale, ..."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Primitive:
    """null, boolean, int, long, float, double, bytes or string."""

    name: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    """`size` bytes."""

    name: str
    size: int
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class Enumeration:
    """One of a few symbols, written as its position."""

    name: str
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """An array."""

    items: Schema


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map, whose keys are strings."""

    values: Schema


@dataclass(frozen=True, slots=True)
class UnionOf:
    """One of several schemas, written behind the position of the one that it is."""

    branches: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record. `default` is JSON, and counts only if there is one (`defaulted`)."""

    name: str
    schema: Schema
    aliases: tuple[str, ...] = ()
    defaulted: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Record:
    """Fields in the order in which they are written."""

    name: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A named schema of the same document, by its full name: the only way in which a schema may hold itself."""

    name: str


Schema = Primitive | Fixed | Enumeration | ListOf | MapOf | UnionOf | Record | Reference


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A whole schema, and what its names stand for."""

    root: Schema
    named: Mapping[str, Schema]

    def resolved(self, schema: Schema) -> Schema:
        """Return `schema`, or what it refers to."""
        return self.named[schema.name] if isinstance(schema, Reference) else schema


def parse_schema(text: str, references: Sequence[str] = ()) -> ParsedSchema:
    """Read a schema from its JSON, after those that it refers to. Raises AvroSchemaError for what Avro does not allow,
    or what cannot be carried here."""
    try:
        *others, declared = [json.loads(each) for each in (*references, text)]
    except ValueError as error:
        raise AvroSchemaError(f"the schema is not JSON: {error}") from error
    parser = _Parser()
    try:
        for other in others:
            parser.schema(other, "")
        root = parser.schema(declared, "")
    except KeyError as error:
        raise AvroSchemaError(f"a part of the schema lacks {error}") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise AvroSchemaError(f"the schema cannot be read: {type(error).__name__} {error}") from error
    except RecursionError as error:
        raise AvroSchemaError("the schema is nested too deeply") from error
    return ParsedSchema(root, parser.named)


class _Parser:
    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def schema(self, declared: Any, namespace: str) -> Schema:
        if isinstance(declared, str):
            return Primitive(declared) if declared in PRIMITIVES else self._reference(declared, namespace)
        if isinstance(declared, list):
            return UnionOf(tuple(self.schema(each, namespace) for each in declared))
        kind = declared["type"]
        if isinstance(kind, dict | list):
            return self.schema(kind, namespace)
        match kind:
            case "array":
                return ListOf(self.schema(declared["items"], namespace))
            case "map":
                return MapOf(self.schema(declared["values"], namespace))
            case "record" | "error" | "enum" | "fixed":
                return self._named(kind, declared, namespace)
            case _ if kind in PRIMITIVES:
                return Primitive(kind, _logical(declared))
            case _:
                return self._reference(kind, namespace)

    def _reference(self, name: str, namespace: str) -> Schema:
        for full in (_full(name, namespace), name):
            if full in self.named:
                return Reference(full)
        raise AvroSchemaError(f'the schema has the type "{name}", which it does not define')

    def _named(self, kind: str, declared: Mapping[str, Any], namespace: str) -> Schema:
        name = _full(declared["name"], declared.get("namespace", namespace))
        inner = name.rpartition(".")[0]
        made: Schema
        if kind == "fixed":
            made = Fixed(name, int(declared["size"]), _logical(declared))
        elif kind == "enum":
            made = Enumeration(name, tuple(declared["symbols"]))
        else:
            self.named[name] = Reference(name)  # its fields may name it
            made = Record(name, tuple(self._member(each, inner) for each in declared["fields"]))
        self.named[name] = made
        return made

    def _member(self, declared: Mapping[str, Any], namespace: str) -> Member:
        return Member(
            declared["name"],
            self.schema(declared["type"], namespace),
            tuple(declared.get("aliases", ())),
            "default" in declared,
            declared.get("default"),
        )


def _full(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _logical(declared: Mapping[str, Any]) -> Logical | None:
    name = declared.get("logicalType")
    if not isinstance(name, str):
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    valid = isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision
    return Logical(name, precision, scale) if valid and precision else None  # one that is not valid is ignored
