"""UNNEST: each row once for each element of a list or entry of a map, beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, duckdb_type, no_changes, positional
from operators.kernel import Step
from operators.names import AT, WEIGHT
from operators.sql import Sql
from operators.sql_text import all_named, inner, named, select
from operators.state.operator_state import State
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnestOperator(KernelDefaults):
    """The columns of `input`, then those of an element of the list or map at `column`.

    The fields of an element that is a struct are columns of their own, and so are key and value of an entry; with
    `ordinality` its place follows, from 1. A row whose list is NULL or empty goes, unless it is kept (`outer`): then it
    comes out once, with NULLs.
    """

    input: pa.Schema
    column: int
    ordinality: bool = False
    outer: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    @property
    def output(self) -> pa.Schema:
        ordinal = [pa.int32()] if self.ordinality else []
        return positional([*self.input.types, *(type_ for _, type_ in self._parts()), *ordinal])

    def _parts(self) -> list[tuple[str, pa.DataType]]:
        """The text of each column of an element `e`, and its type."""
        type_ = self.input.field(self.column).type
        if pa.types.is_map(type_):
            return [("e.key", type_.key_type), ("e.value", type_.item_type)]
        if pa.types.is_struct(type_.value_type):
            fields = list(type_.value_type)
            return [(f"struct_extract_at(e, {i})", field.type) for i, field in enumerate(fields, 1)]
        return [("e", type_.value_type)]

    @property
    def piecewise(self) -> bool:
        return True

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        nested = pa.table([rows.column(self.column), pa.array(np.arange(rows.num_rows))], names=["nested", AT])
        elements = sql(self._statement(), {"rows": nested})
        width = len(self.input)
        table = rows.select(self.input.names).take(elements.column(AT))
        for i, name in enumerate(self.output.names[width:]):
            table = table.append_column(name, elements.column(f"p{i}"))
        weights = rows.column(WEIGHT).take(elements.column(AT))
        return Step(changes=as_changes(table.append_column(WEIGHT, weights), self.output))

    def _statement(self) -> str:
        """The elements of each row, in order, with the number of the row."""
        is_map = pa.types.is_map(self.input.field(self.column).type)
        parts = [f"CAST({text} AS {duckdb_type(type_)})" for text, type_ in self._parts()]
        if self.ordinality:
            parts.append("CAST(n AS INTEGER)")
        elements, places = "entries", "range(1, len(entries) + 1)"
        if self.outer:
            empty = "coalesce(len(entries), 0) = 0"
            elements, places = (f"CASE WHEN {empty} THEN [NULL] ELSE {text} END" for text in (elements, places))
        entries = named("map_entries(nested)" if is_map else "nested", "entries")
        unnested = all_named([f"unnest({elements})", f"unnest({places})"], ["e", "n"])
        lists = inner(select([AT, *unnested], inner(select([AT, entries], "rows"))))
        return select([AT, *all_named(parts, (f"p{i}" for i in range(len(parts))))], lists)
