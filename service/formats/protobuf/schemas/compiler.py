"""From .proto files and sets of descriptors to message types, by protoc and the descriptors of Protocol Buffers' own
library, so that every file means what it means to everybody else."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from service.formats.protobuf.schemas.schema import (
    ProtobufEnum,
    ProtobufField,
    ProtobufMessage,
    ProtobufSchema,
    ProtobufSchemaError,
)

_FILE = "schema.proto"
"""The name of a file that has none."""

_MISTAKE = re.compile(r"[^ ]+\.proto:")
"""The beginning of a line in which protoc reports a mistake."""

_SECONDS = 60
"""For one file: protoc needs a twentieth of a second."""

_KINDS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    10: "group",
    11: "message",
    12: "bytes",
    13: "uint32",
    14: "enum",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
"""FieldDescriptorProto.Type."""


@cache
def compiled(text: str, references: tuple[tuple[str, str], ...] = ()) -> ProtobufSchema:
    """Read a .proto file. It may import `references`, each a name and a text, and those of Protocol Buffers' own.

    Raises ProtobufSchemaError.
    """
    with TemporaryDirectory(prefix="tailrace-protoc-") as folder:
        for name, source in (*references, (_FILE, text)):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ProtobufSchemaError(f'a schema cannot be imported as "{name}"')
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(source, encoding="utf-8")
        made = Path(folder) / "descriptors"
        # A process of its own: what protoc finds wrong, it writes to the standard error.
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}", f"--proto_path={_well_known()}"]
        command += ["--include_imports", f"--descriptor_set_out={made}", _FILE]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise ProtobufSchemaError("protoc does not finish with the schema") from error
        if done.returncode:
            messages = [
                line
                for line in done.stderr.replace(f"{folder}/", "").splitlines()
                if _MISTAKE.match(line) and "warning:" not in line
            ]
            raise ProtobufSchemaError("; ".join(messages) or f"protoc ends with {done.returncode}")
        return described(made.read_bytes())


def _well_known() -> Path:
    from importlib.resources import files

    return Path(str(files("grpc_tools"))) / "_proto"


@cache
def described(data: bytes) -> ProtobufSchema:
    """Read a set of descriptors, as `protoc --include_imports --descriptor_set_out` writes it; what its last file
    declares comes first. Raises ProtobufSchemaError."""
    # Imported here, since only pipelines of this format need it.
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
        pool = descriptor_pool.DescriptorPool()
        for file in files:
            pool.Add(file)
        found = [pool.FindFileByName(file.name) for file in files]
    except (DecodeError, TypeError, KeyError) as error:
        raise ProtobufSchemaError(f"the descriptors cannot be read: {error}; protoc needs --include_imports") from error
    if not found:
        raise ProtobufSchemaError("there are no descriptors")
    messages: dict[str, ProtobufMessage] = {}
    enums: dict[str, ProtobufEnum] = {}
    for file in found:
        for message in file.message_types_by_name.values():
            _add(message, messages, enums)
        for enum in file.enum_types_by_name.values():
            enums[enum.full_name] = _enum(enum)
    declared = _full(files[-1].package, files[-1].message_type)
    return ProtobufSchema(messages, enums, declared)


def _full(package: str, messages: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"{package}.{each.name}" if package else each.name for each in messages)


def _add(message: Any, messages: dict[str, ProtobufMessage], enums: dict[str, ProtobufEnum]) -> None:
    from google.protobuf import descriptor_pb2

    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    messages[message.full_name] = ProtobufMessage(
        message.full_name,
        tuple(sorted(map(_field, message.fields), key=lambda each: each.number)),
        proto.options.map_entry,
        _full(message.full_name, proto.nested_type),
    )
    for enum in message.enum_types:
        enums[enum.full_name] = _enum(enum)
    for inner in message.nested_types:
        _add(inner, messages, enums)


def _field(field: Any) -> ProtobufField:
    kind = _KINDS[field.type]
    type_ = field.message_type or field.enum_type
    oneof = field.containing_oneof
    return ProtobufField(
        field.name,
        field.number,
        kind,
        type_.full_name if type_ else "",
        field.is_repeated,
        field.is_required,
        field.has_presence,
        field.is_packed,
        None if field.is_repeated or kind in ("message", "group") else field.default_value,
        tuple(each.number for each in oneof.fields) if oneof and len(oneof.fields) > 1 else (),
    )


def _enum(enum: Any) -> ProtobufEnum:
    return ProtobufEnum(enum.full_name, {value.name: value.number for value in enum.values}, enum.is_closed)
