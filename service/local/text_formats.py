"""Formats of bytes, as test cases write them: in text, a record a line."""

from __future__ import annotations

from dataclasses import replace

from service.plan.formats import traits
from service.plan.table import Format, Table


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
    if form is None or not traits(form).in_text:
        return form
    kept = {name: value for name, value in form.options.items() if name == "tailrace.update"}
    return Format(traits(form).in_text, kept)
