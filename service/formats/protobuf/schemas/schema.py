"""Message types of Protocol Buffers: what a .proto file or a set of descriptors says of them.

https://protobuf.dev/programming-guides/proto3/ and https://protobuf.dev/editions/features/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VARINTS = frozenset({"int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"})
FIXED = {"fixed32": 4, "sfixed32": 4, "float": 4, "fixed64": 8, "sfixed64": 8, "double": 8}
"""Kinds of fields of a fixed width, and the bytes that each has."""

TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
"""Messages of one field `value`, which tell a value that is there from one that is not."""


class ProtobufSchemaError(Exception):
    """A schema that cannot be read, or that does not fit a table; the text says why."""


@dataclass(frozen=True, slots=True)
class ProtobufEnum:
    """The numbers of an enum's names, in their order. A `closed` one takes a number without a name for none."""

    name: str
    numbers: Mapping[str, int]
    closed: bool


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """A field of a message. `kind` is the word of the language (int32, string), or `enum`, `message`, `group`, whose
    name is `type`. Without `presence` a value that is not written is the default. `oneof` are the numbers of the fields
    of which one at most is there."""

    name: str
    number: int
    kind: str
    type: str
    repeated: bool
    required: bool
    presence: bool
    packed: bool
    default: Any
    oneof: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtobufMessage:
    """Fields in the order of their numbers; `entry` is the message of a map's entries. `inner` are the full names of
    the messages that are declared in it, in their order."""

    name: str
    fields: tuple[ProtobufField, ...]
    entry: bool
    inner: tuple[str, ...]

    def field(self, name: str) -> ProtobufField | None:
        """Return the field of this name."""
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """Message types and enums by their full names, and those messages that the last file declares, in their order."""

    messages: Mapping[str, ProtobufMessage]
    enums: Mapping[str, ProtobufEnum]
    declared: tuple[str, ...]

    def at(self, path: Sequence[int]) -> ProtobufMessage:
        """Return the message at a path of positions, the first among the file's messages. Raises
        ProtobufSchemaError."""
        names = self.declared
        found = None
        for place in path:
            if not 0 <= place < len(names):
                raise ProtobufSchemaError(f"the schema has no message at {list(path)}")
            found = self.messages[names[place]]
            names = found.inner
        if found is None:
            raise ProtobufSchemaError("the schema has no message")
        return found

    def path(self, name: str) -> tuple[int, ...]:
        """Return where a message is declared: the path that `at` takes. Raises ProtobufSchemaError."""

        def below(names: tuple[str, ...]) -> tuple[int, ...] | None:
            for place, each in enumerate(names):
                if each == name:
                    return (place,)
                if name.startswith(each + ".") and (rest := below(self.messages[each].inner)) is not None:
                    return (place, *rest)
            return None

        found = below(self.declared)
        if found is None:
            raise ProtobufSchemaError(f'the message "{name}" is not declared in the schema itself')
        return found

    def named(self, name: str | None) -> ProtobufMessage:
        """Return the message of this name, full or without its package; without a name the first one of the last file.

        Raises ProtobufSchemaError.
        """
        if name is None:
            return self.at((0,))
        full = [each for each in self.messages if each == name or each.endswith("." + name)]
        exact = [each for each in full if each == name]
        if len(exact or full) != 1:
            known = ", ".join(each for each, message in self.messages.items() if not message.entry)
            raise ProtobufSchemaError(
                f'the schema has {"several messages" if full else "no message"} "{name}"; it has {known}'
            )
        return self.messages[(exact or full)[0]]

    def of_class(self, name: str) -> ProtobufMessage:
        """Return the message of a Java class, whose name ends with those of the messages that it is declared in, behind
        dollars, and may begin with that of an outer class of the file. Raises ProtobufSchemaError."""
        parts = name.rpartition(".")[2].split("$")
        for path in (parts, parts[1:]):
            found = [each for each, message in self.messages.items() if not message.entry and self._inner(each) == path]
            if len(found) == 1:
                return self.messages[found[0]]
        raise ProtobufSchemaError(f'the schema has no message of the class "{name}"')

    def _inner(self, name: str) -> list[str]:
        """Return the name of a message behind those of the messages that it is declared in, without its package."""
        outer, _, own = name.rpartition(".")
        return [*self._inner(outer), own] if outer in self.messages else [own]
