"""Formats of bytes, as test cases write them: in text, a record a line."""

from __future__ import annotations

from dataclasses import replace

from service.plan.table import Format, Table

IN_TEXT = {
    "json-registry": "json",
    "avro": "json",
    "protobuf": "json",
    "protobuf-confluent": "json",
    "avro-confluent": "json",
    "debezium-avro-confluent": "debezium-json",
}
"""What stands in the files of a case in place of these formats, so that no schema registry is asked."""


def in_text(table: Table) -> Table:
    """Return `table`, with formats that people can read and write."""
    connector = table.connector
    return replace(
        table,
        connector=replace(
            connector, key_format=_in_text(connector.key_format), value_format=_in_text(connector.value_format)
        ),
    )


def _in_text(form: Format | None) -> Format | None:
    if form is None or form.kind not in IN_TEXT:
        return form
    kept = {name: value for name, value in form.options.items() if name == "tailrace.update"}
    return Format(IN_TEXT[form.kind], kept)
