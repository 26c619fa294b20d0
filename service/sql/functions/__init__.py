"""The functions of Flink SQL that are known here, by name: what they take, what results, and DuckDB's text for it."""

from __future__ import annotations

from collections.abc import Mapping

from service.sql.functions.arithmetic import OPERATORS
from service.sql.functions.collections import COLLECTIONS
from service.sql.functions.encodings import ENCODINGS
from service.sql.functions.json import JSON, JSON_FORMS
from service.sql.functions.json_writing import JSON_WRITING, JSON_WRITING_FORMS
from service.sql.functions.logic import LOGIC
from service.sql.functions.mathematics import MATHEMATICS
from service.sql.functions.patterns import PATTERNS
from service.sql.functions.signature import Form, Overload, Special, Table
from service.sql.functions.strings import STRING_FORMS, STRINGS
from service.sql.functions.time_units import TIME_FORMS
from service.sql.functions.times import TIMES
from service.sql.functions.type_names import TYPE_NAMES

FUNCTIONS: Table = {
    **OPERATORS,
    **LOGIC,
    **MATHEMATICS,
    **STRINGS,
    **ENCODINGS,
    **PATTERNS,
    **TIMES,
    **JSON,
    **JSON_WRITING,
    **COLLECTIONS,
    **TYPE_NAMES,
}
"""Functions whose arguments are all expressions; operators stand here under their sign."""

FORMS: Mapping[str, Special] = {**STRING_FORMS, **TIME_FORMS, **JSON_FORMS, **JSON_WRITING_FORMS}
"""Functions with words of their own among the arguments."""

PLANNED: Mapping[str, str] = {
    "CURRENT_WATERMARK": "a watermark belongs to a batch, not to a row; late rows go to TAILRACE_TOPICS__LATE",
    "SOURCE_WATERMARK": "the watermark of a table is an expression over its columns",
    "HASH_CODE": "MD5 and SHA256 are there",
    **dict.fromkeys(("SHA224", "SHA384", "SHA512"), "DuckDB, which computes here, has SHA256 alone"),
    **dict.fromkeys(("JSON", "PARSE_JSON", "TRY_PARSE_JSON"), "JSON_STRING and JSON_OBJECT are there"),
    **dict.fromkeys(("ARRAY_SUM", "OBJECT_OF", "OBJECT_UPDATE"), ""),
}
"""Functions of Flink that are refused by name, with what to know about it."""

__all__ = ["FORMS", "FUNCTIONS", "PLANNED", "Form", "Overload"]
