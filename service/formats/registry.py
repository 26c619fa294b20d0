"""Every format, a row each: how it reads and writes a key or a value, and what its records say of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from service.formats import raw
from service.formats.avro.part import AvroReader, AvroWriter
from service.formats.changes import canal, changelog, debezium, maxwell, ogg
from service.formats.changes.change_encodings import ChangeEncoding, plain, upsert
from service.formats.changes.debezium_avro import debezium_avro
from service.formats.changes.decoder import ChangeDecoder, Shape
from service.formats.contract import Decoder, Encoder, PartReader, PartWriter
from service.formats.csv.reader import CsvReader
from service.formats.csv.writer import CsvWriter
from service.formats.datagen import DatagenDecoder
from service.formats.json.options import flag
from service.formats.json.parse import Fields
from service.formats.json.part import JsonReader, JsonWriter
from service.formats.json.registered import RegisteredJsonReader, RegisteredJsonWriter
from service.formats.print import PrintEncoder
from service.formats.protobuf.part import ProtobufReader, ProtobufWriter
from service.formats.record_parts import Part
from service.formats.record_size import RecordLimit
from service.formats.row_decoder import RowDecoder
from service.formats.row_encoder import RowEncoder
from service.plan.formats import TRAITS
from service.plan.table import Format, Table


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """A format: its decoder, its encoder and its options.

    `reader` takes the wanted columns, the options, and all columns of the key or value; `writer` the columns, the
    options, and the position of each column in a block. `shape` is there for formats whose records describe changes,
    of which `fields` reads what the shape asks for. `encoding` writes changes; its second argument says
    whether a delete is followed by a tombstone.
    """

    reader: Callable[[Part, Format, Part], PartReader]
    writer: Callable[[Part, Format, Mapping[int, str]], PartWriter]
    encoding: Callable[[Format, bool], ChangeEncoding]
    shape: Callable[[Format], Shape] | None = None
    fields: Callable[[Fields, Format], PartReader] = JsonReader


def _json(part: Part, form: Format, whole: Part) -> PartReader:
    return JsonReader(Fields(part.names, part.types), form)


def _registered_json(part: Part, form: Format, whole: Part) -> PartReader:
    return RegisteredJsonReader(part, form)


def _avro_fields(fields: Fields, form: Format) -> PartReader:
    part = Part(tuple(range(len(fields.names))), fields.names, fields.types)
    return AvroReader(part, form, part)


def _raw(part: Part, form: Format, whole: Part) -> PartReader:
    return raw.RawReader(part, form)


def _protobuf(part: Part, form: Format, whole: Part) -> PartReader:
    return ProtobufReader(part, form)


def _debezium(form: Format, tombstones: bool) -> ChangeEncoding:
    as_flink = form.options.get("tailrace.update", "u").lower() == "d-c"
    return (debezium.encode_without_updates if as_flink else debezium.encode)(tombstones=tombstones)


def _debezium_avro(form: Format, tombstones: bool) -> ChangeEncoding:
    return debezium_avro(tombstones=tombstones, updates=form.options.get("tailrace.update", "u").lower() == "u")


def _maxwell(form: Format, tombstones: bool) -> ChangeEncoding:
    return maxwell.encode


FORMATS: Mapping[str, FormatSpec] = {
    "json": FormatSpec(_json, JsonWriter, lambda form, tombstones: plain),
    "json-registry": FormatSpec(_registered_json, RegisteredJsonWriter, lambda form, tombstones: plain),
    "csv": FormatSpec(CsvReader, CsvWriter, lambda form, tombstones: plain),
    "avro": FormatSpec(AvroReader, AvroWriter, lambda form, tombstones: plain),
    "avro-confluent": FormatSpec(AvroReader, AvroWriter, lambda form, tombstones: plain),
    "debezium-avro-confluent": FormatSpec(
        AvroReader,
        partial(AvroWriter, enveloped=True),
        _debezium_avro,
        lambda form: debezium.Debezium(wrapped=False),
        _avro_fields,
    ),
    "protobuf": FormatSpec(_protobuf, ProtobufWriter, lambda form, tombstones: plain),
    "protobuf-confluent": FormatSpec(_protobuf, ProtobufWriter, lambda form, tombstones: plain),
    "raw": FormatSpec(_raw, raw.RawWriter, lambda form, tombstones: plain),
    "debezium-json": FormatSpec(
        _json, JsonWriter, _debezium, lambda form: debezium.Debezium(wrapped=flag(form, "schema-include"))
    ),
    "changelog-json": FormatSpec(
        _json, JsonWriter, lambda form, tombstones: changelog.encode, lambda form: changelog.Changelog()
    ),
    "canal-json": FormatSpec(_json, JsonWriter, lambda form, tombstones: canal.encode, canal.Canal),
    "maxwell-json": FormatSpec(_json, JsonWriter, _maxwell, lambda form: maxwell.Maxwell()),
    "ogg-json": FormatSpec(_json, JsonWriter, lambda form, tombstones: ogg.encode, lambda form: ogg.Ogg()),
}

assert all(TRAITS[kind].carries_changes == (spec.shape is not None) for kind, spec in FORMATS.items())


def decoder(table: Table, columns: tuple[int, ...]) -> Decoder:
    """Return a decoder of the physical and METADATA columns at these indexes of `table.columns`, in this order."""
    if table.connector.kind == "datagen":
        return DatagenDecoder(table, columns)
    form = table.connector.value_format
    if form is None or form.kind not in FORMATS:
        raise ValueError(f"a table cannot be read as {form.kind if form else 'rows without a format'}")
    shape = FORMATS[form.kind].shape
    if shape is not None:
        return ChangeDecoder(table, columns, shape(form), FORMATS[form.kind].fields)
    return RowDecoder(table, columns, reader, upsert=table.connector.kind == "upsert-kafka")


def reader(part: Part, form: Format | None, whole: Part) -> PartReader:
    """Return the reader of the columns of `part`, which is some of `whole`; without a form there is nothing to read."""
    form = form or Format("json")
    return FORMATS[form.kind].reader(part, form, whole)


def writer(part: Part, form: Format, place: Mapping[int, str]) -> PartWriter:
    """Return the writer of the columns of `part`; `place` names their columns in a block."""
    return FORMATS[form.kind].writer(part, form, place)


def encoder(
    table: Table,
    columns: tuple[int, ...],
    query: str,
    key: tuple[int, ...] | None = None,
    partitions: int | None = None,
    room: RecordLimit | None = None,
) -> Encoder:
    """Return an encoder for the rows of `query`, whose c0, c1, ... fill the columns at these indexes.

    `key` holds the positions whose values tell rows apart (none of them: there is one row at most), by default those of
    the PRIMARY KEY, if there is one: of a key's -row and +row one update is made. `partitions` is the number of the
    topic's partitions: with it, rows whose key is not written stay in the partition of their key all the same. `room`
    is that of a record, where it is bounded.
    """
    if key is None and table.key:
        key = tuple(columns.index(k) for k in table.key if k in columns)
    if table.connector.kind == "print":
        return PrintEncoder(table, columns, key)
    return RowEncoder(table, columns, query, key, partitions, writer, partial(change_encoding, table), room)


def change_encoding(table: Table, tombstones: bool) -> ChangeEncoding:
    """Return the form that changes of `table` have on the wire; with `tombstones`, a delete is followed by one."""
    form = table.connector.value_format or Format("json")
    return upsert if table.connector.kind == "upsert-kafka" else FORMATS[form.kind].encoding(form, tombstones)
