"""The options of the JSON formats, as a WITH clause names them behind the format's own prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.plan.table import Format


@dataclass(frozen=True, slots=True)
class JsonOptions:
    """The options of JSON text; the defaults are Flink's."""

    standard: Literal["SQL", "ISO-8601"] = "SQL"
    fail_on_missing: bool = False
    ignore_errors: bool = False
    plain_decimals: bool = False
    omit_nulls: bool = False
    null_keys: Literal["FAIL", "DROP", "LITERAL"] = "FAIL"
    null_key_literal: str = "null"


def json_options(form: Format) -> JsonOptions:
    """Return the options of a JSON format, whichever envelope it has."""
    values = form.options
    null_keys = values.get("map-null-key.mode", "FAIL").upper()
    return JsonOptions(
        standard="ISO-8601" if values.get("timestamp-format.standard", "SQL").upper() == "ISO-8601" else "SQL",
        fail_on_missing=flag(form, "fail-on-missing-field"),
        ignore_errors=flag(form, "ignore-parse-errors"),
        plain_decimals=flag(form, "encode.decimal-as-plain-number"),
        omit_nulls=flag(form, "encode.ignore-null-fields"),
        null_keys="DROP" if null_keys == "DROP" else "LITERAL" if null_keys == "LITERAL" else "FAIL",
        null_key_literal=values.get("map-null-key.literal", "null"),
    )


def flag(form: Format, option: str, default: bool = False) -> bool:
    """Return the value of an option that is true or false."""
    return form.options.get(option, "true" if default else "false").lower() == "true"
