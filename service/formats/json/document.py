"""Reads wanted fields out of blocks of JSON text: in DuckDB while it can be believed, exactly where it cannot.

A block is tried in the ways of `json_statement`, the quickest first; after a failure the next blocks begin with the
next way for a while, since a topic with optional fields has them everywhere. Rows in doubt are read by `json_exact`,
one by one. The way taken never changes the answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from operators.sql import Sql
from service.formats.json.columns import readable
from service.formats.json.options import JsonOptions
from service.formats.json.parse import Fields, Quick, Statement, Way, whole
from service.formats.json.reference import Unreadable, exact_record
from service.plan.types import Row, arrow

_REMEMBERED_BLOCKS = 64


class Verdict(NamedTuple):
    """Why a record cannot be read. An empty reason: it is to be passed over without a word."""

    reason: str
    detail: str


class Answer(NamedTuple):
    """The fields of a block, one column a field, and the rows (by position) that could not be read; theirs are NULL."""

    columns: list[pa.ChunkedArray]
    bad: dict[int, Verdict]


class Document:
    """Picklable: a compiled reader of `fields`."""

    def __init__(self, fields: Fields, options: JsonOptions) -> None:
        self._fields = fields
        self._options = options
        self._schema = [arrow(t) for t in fields.types]
        fast = bool(fields.names) and readable(Row(fields.names, fields.types))
        ways = [Statement(fields, options, way) for way in Way] if fast else []
        # Two ways may be the same statement.
        self._ways = tuple({way.text: way for way in ways}.values())
        self._first = 0
        self._blocks_left = 0

    def read(self, texts: pa.ChunkedArray, sql: Sql) -> Answer:
        """The fields of each text; no text is NULL."""
        if len(texts) == 0:
            return Answer([pa.chunked_array([], type=t) for t in self._schema], {})
        block = whole(texts)
        return self._corrected(self._quickly(block, sql), block)

    def _quickly(self, block: pa.Array, sql: Sql) -> Quick:
        if self._blocks_left == 0:
            self._first = 0
        self._blocks_left -= 1
        for number, way in enumerate(self._ways[self._first :], self._first):
            answer = way.read(block, sql)
            if answer is not None:
                return answer
            self._first, self._blocks_left = number + 1, _REMEMBERED_BLOCKS
        return self._soundly(block, sql)

    def _soundly(self, block: pa.Array, sql: Sql) -> Quick:
        """The last resort: what is not JSON is set apart."""
        nothing = Quick([pa.nulls(len(block), t) for t in self._schema], np.ones(len(block), dtype=bool))
        if not self._ways:
            return nothing
        valid = sql("SELECT json_valid(v) AS ok FROM records", {"records": pa.table({"v": block})})["ok"].to_numpy()
        sound = np.flatnonzero(valid)
        answer = self._ways[-1].read(block.take(pa.array(sound)), sql)
        if answer is None:
            return nothing
        source = np.full(len(block), len(sound))
        source[sound] = np.arange(len(sound))
        taken = pa.array(source, mask=~valid)
        nothing.doubt[sound] = answer.doubt
        return Quick([column.take(taken) for column in answer.columns], nothing.doubt)

    def _corrected(self, quick: Quick, block: pa.Array) -> Answer:
        """The quick answer with the rows in doubt read exactly."""
        doubted = np.flatnonzero(quick.doubt)
        if len(doubted) == 0:
            return Answer([pa.chunked_array([c]) for c in quick.columns], {})
        columns: list[list[Any]] = [[] for _ in self._schema]
        bad: dict[int, Verdict] = {}
        nothing = [None] * len(self._schema)
        for index, text in zip(doubted, block.take(pa.array(doubted)).to_pylist(), strict=True):
            try:
                values = exact_record(text, self._fields.names, self._fields.types, self._options)
            except Unreadable as error:
                ignored = self._options.ignore_errors
                bad[int(index)] = Verdict("", "") if ignored else Verdict(error.reason, error.detail)
                values = nothing
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        source = np.arange(len(block))
        source[doubted] = len(block) + np.arange(len(doubted))
        taken = pa.array(source)
        exact = [pa.array(values, type=t) for t, values in zip(self._schema, columns, strict=True)]
        return Answer(
            [
                pa.chunked_array([pa.concat_arrays([column, correction]).take(taken)])
                for column, correction in zip(quick.columns, exact, strict=True)
            ],
            bad,
        )
