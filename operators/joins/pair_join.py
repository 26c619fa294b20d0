"""The two halves of a row, put together again: they went through two branches of the plan, such as OVER windows of
different partitions, and come out of these at different times.

Law: a key has one row on each side, ever. The first of the two to come is kept until the other has come; then they are
put together, and both are forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes, positional
from operators.kernel import Step
from operators.names import CAME, FOUND, LEFT_CAME, PREVIOUS, RIGHT_CAME, column, columns, key_columns
from operators.sql import Sql
from operators.sql_text import all_named, inner, join, named, of, same, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.keyed import KeyedTable
from operators.state.tables.table import specs_of
from operators.time import Clock

_SIDES = ("lefts", "rights")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJoinOperator(KernelDefaults):
    """Pairs the rows of two inputs, neither of which takes rows back. Port 0 is left, port 1 is right. NULL is equal
    to NULL in a key.

    The output has left's columns, then right's. Raises ValueError for keys of different length, or for none.
    """

    left: pa.Schema
    right: pa.Schema
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.left_keys or len(self.left_keys) != len(self.right_keys):
            raise ValueError("both sides have the same key")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        return positional([*self.left.types, *self.right.types])

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._waiting())

    def _waiting(self) -> KeyedTable:
        """The rows of which one half has come, with NULL for the columns of the other."""
        keys = [
            pa.field(name, self.left.field(place).type)
            for name, place in zip(self._key_columns, self.left_keys, strict=True)
        ]
        halves = [
            pa.field(name, schema.field(place).type)
            for names, schema, rest in zip(self._names, self.inputs, self._rest, strict=True)
            for name, place in zip(names, rest, strict=True)
        ]
        came = [pa.field(name, pa.bool_()) for name in (LEFT_CAME, RIGHT_CAME)]
        return KeyedTable(name="waiting", schema=pa.schema([*keys, *halves, *came]), keys=len(keys))

    @property
    def _key_columns(self) -> list[str]:
        return key_columns(len(self.left_keys))

    @property
    def _rest(self) -> tuple[list[int], list[int]]:
        """The positions of the columns of each side that are not its key."""
        return (
            [i for i in range(len(self.left)) if i not in self.left_keys],
            [i for i in range(len(self.right)) if i not in self.right_keys],
        )

    @property
    def _names(self) -> tuple[list[str], list[str]]:
        """The names of those columns, once both sides are in one table."""
        left, right = self._rest
        return [f"l{i}" for i in range(len(left))], [f"r{i}" for i in range(len(right))]

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        if not any(rows.num_rows for rows in inputs):
            return Step(changes=no_changes(self.output))
        waiting = self._waiting()
        keys, (left, right) = self._key_columns, self._names
        came = [named(f"a.{CAME} IS NOT NULL", LEFT_CAME), named(f"b.{CAME} IS NOT NULL", RIGHT_CAME)]
        shown = all_named((f"COALESCE(a.{key}, b.{key})" for key in keys), keys)
        there = named("true", CAME)
        halves = [
            inner(select([*all_named(columns(of_key), keys), *all_named(columns(rest), names), there], side))
            for side, of_key, rest, names in zip(
                _SIDES, (self.left_keys, self.right_keys), self._rest, self._names, strict=True
            )
        ]
        both = join(f"{halves[0]} a", f"{halves[1]} b", same(of("a", keys), of("b", keys)), "FULL JOIN")
        statement = select([*shown, *of("a", left), *of("b", right), *came], both)
        pairs = waiting.read(state, sql(statement, dict(zip(_SIDES, inputs, strict=True))), sql)
        known = pairs.rows.column(FOUND).to_numpy()
        kept = {name: pairs.rows.column(name) for name in waiting.schema.names}
        whole = known | (kept[LEFT_CAME].to_numpy() & kept[RIGHT_CAME].to_numpy())
        waiting.write(state, pairs, pa.table(kept, schema=waiting.schema), stays=~whole)
        return Step(changes=self._together(pairs.rows, whole, sql))

    def _together(self, rows: pa.Table, whole: np.ndarray, sql: Sql) -> pa.Table:
        """The rows that are `whole`, each half as it has come now or before."""
        if not whole.any():
            return no_changes(self.output)
        items: list[str] = []
        sides = zip((self.left, self.right), (self.left_keys, self.right_keys), self._rest, self._names, strict=True)
        for (schema, of_key, rest, names), side in zip(sides, (LEFT_CAME, RIGHT_CAME), strict=True):
            for place in range(len(schema)):
                if place in of_key:
                    text = key_columns(len(of_key))[of_key.index(place)]
                else:
                    name = names[rest.index(place)]
                    text = f"CASE WHEN {side} THEN {name} ELSE {PREVIOUS}{name} END"
                items.append(named(text, column(len(items))))
        answered = sql(select(items, "rows"), {"rows": rows.filter(pa.array(whole))})
        return as_changes(weigh(answered, 1), self.output)
