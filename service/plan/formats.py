"""The properties of formats, a row each.

`service.formats.registry` has their readers and writers, `service.sql.options.format_options` their options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from service.plan.table import Format


class Family(Enum):
    """The encodings of rows, which determine the types that a format can hold and its kind of schema."""

    JSON = "json"
    CSV = "csv"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    RAW = "raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatTraits:
    """The properties that set a format apart.

    Records of one that `carries_changes` may take rows back; all others only add rows. Those of one `with_registry`
    name their schema by its id in a registry. In one that is `read_by_all_columns`, the types of all columns say where
    in a record a value stands, so that none may be left out. `in_text` is what stands in the files of a test case in
    its place, where people cannot read its records: a format of the same changes, for which no registry is asked.
    """

    family: Family
    carries_changes: bool = False
    with_registry: bool = False
    read_by_all_columns: bool = False
    in_text: str = ""


TRAITS: Mapping[str, FormatTraits] = {
    "json": FormatTraits(family=Family.JSON),
    "json-registry": FormatTraits(family=Family.JSON, with_registry=True, in_text="json"),
    "debezium-json": FormatTraits(family=Family.JSON, carries_changes=True),
    "changelog-json": FormatTraits(family=Family.JSON, carries_changes=True),
    "canal-json": FormatTraits(family=Family.JSON, carries_changes=True),
    "maxwell-json": FormatTraits(family=Family.JSON, carries_changes=True),
    "ogg-json": FormatTraits(family=Family.JSON, carries_changes=True),
    "csv": FormatTraits(family=Family.CSV),
    "avro": FormatTraits(family=Family.AVRO, read_by_all_columns=True, in_text="json"),
    "avro-confluent": FormatTraits(family=Family.AVRO, with_registry=True, in_text="json"),
    "debezium-avro-confluent": FormatTraits(
        family=Family.AVRO, carries_changes=True, with_registry=True, in_text="debezium-json"
    ),
    "protobuf": FormatTraits(family=Family.PROTOBUF, in_text="json"),
    "protobuf-confluent": FormatTraits(family=Family.PROTOBUF, with_registry=True, in_text="json"),
    "raw": FormatTraits(family=Family.RAW),
}


def traits(form: Format) -> FormatTraits:
    """Return the properties of a format."""
    return TRAITS[form.kind]
