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
    quote = "" if flag(form, "disable-quote-character") else _unescaped(values.get("quote-character", '"'))
    escape = _unescaped(values.get("escape-character", ""))
    return CsvOptions(
        delimiter=_unescaped(values.get("field-delimiter", ",")),
        quote=quote,
        # A quote is looked for first, so that an escape character that is the quote is none.
        escape="" if escape == quote else escape,
        comments=flag(form, "allow-comments"),
        ignore_errors=flag(form, "ignore-parse-errors"),
        element_delimiter=values.get("array-element-delimiter", ";"),
        null=values.get("null-literal"),
        scientific=flag(form, "write-bigdecimal-in-scientific-notation", default=True),
    )


def _unescaped(text: str) -> str:
    """A character as it is written in SQL: '\\t', '\\u0001' and '\\\\' stand for one, and a single '\\' is itself."""
    return text.encode().decode("unicode_escape") if len(text) > 1 else text
