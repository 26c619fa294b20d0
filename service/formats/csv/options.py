"""The options of CSV, as a WITH clause names them behind the format's prefix."""

from __future__ import annotations

from dataclasses import dataclass

from service.formats.json.options import flag
from service.plan.table import Format


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """The options of CSV text; the defaults are Flink's. An empty `quote` means that there are no quotes."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    comments: bool = False
    ignore_errors: bool = False
    element_delimiter: str = ";"
    null: str | None = None
    scientific: bool = True


def csv_options(form: Format) -> CsvOptions:
    """Return the options of a CSV format."""
    values = form.options
    return CsvOptions(
        delimiter=_unescaped(values.get("field-delimiter", ",")),
        quote="" if flag(form, "disable-quote-character") else values.get("quote-character", '"'),
        escape=values.get("escape-character", ""),
        comments=flag(form, "allow-comments"),
        ignore_errors=flag(form, "ignore-parse-errors"),
        element_delimiter=values.get("array-element-delimiter", ";"),
        null=values.get("null-literal"),
        scientific=flag(form, "write-bigdecimal-in-scientific-notation", default=True),
    )


def _unescaped(text: str) -> str:
    """A delimiter as it is written in SQL: '\\t' and '\\u0001' stand for the character."""
    return text.encode().decode("unicode_escape") if "\\" in text else text
