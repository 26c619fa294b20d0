"""JSON as the form of a record's key or value: an object whose members are the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import DeadLetter
from service.formats.json.document import Document
from service.formats.json.options import json_options
from service.formats.json.parse import Fields
from service.formats.json.text import object_text
from service.formats.record_parts import Part
from service.formats.records import BAD_UTF8, texts
from service.plan.table import Format


class JsonReader:
    """Reads the members of objects. Picklable."""

    def __init__(self, fields: Fields, form: Format) -> None:
        self._document = Document(fields, json_options(form))

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return a column for each member, NULL where there is no value or none that can be read; `bad` grows."""
        return fields_of(self._document, values, sql, bad)


class JsonWriter:
    """Writes objects of the columns of a part; a column that is not written is null. Picklable.

    >>> from service.plan.types import DOUBLE, STRING
    >>> from tests.formats.wire import encode, table, values
    >>> print(*values(encode(table({"who": STRING, "amount": DOUBLE}), (1, ("ann", 1e7)), (1, (None, 0.5)))), sep="\\n")
    {"who":"ann","amount":1.0E7}
    {"who":null,"amount":0.5}
    """

    def __init__(self, part: Part, form: Format, place: Mapping[int, str]) -> None:
        expressions: Sequence[str] = [place.get(index, "NULL") for index in part.columns]
        self.expression = object_text(expressions, part.names, part.types, json_options(form))

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the texts as they are."""
        return column


def fields_of(
    document: Document, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]
) -> list[pa.ChunkedArray]:
    """Return the document's fields for every record, NULL where there is no value or none that can be read.

    `bad` grows by the records that cannot be read.
    """
    if not values.null_count and (alike := document.read_at_once(values, sql)) is not None:
        bad.update(alike.bad)
        return alike.columns
    decoded, broken = texts(values)
    bad.update(dict.fromkeys(broken, BAD_UTF8))
    if not decoded.null_count:
        answer = document.read(decoded, sql)
        bad.update(answer.bad)
        return answer.columns
    present = np.flatnonzero(decoded.is_valid().to_numpy())
    answer = document.read(decoded.drop_null(), sql)
    bad.update({int(present[i]): verdict for i, verdict in answer.bad.items()})
    places = np.full(len(values), -1, dtype=np.int64)
    places[present] = np.arange(len(present))
    taken = pa.array(places, mask=places < 0)
    return [column.take(taken) for column in answer.columns]
