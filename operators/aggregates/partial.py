"""Partial aggregates: what is computed of the rows of one block before the exchange, to be merged behind it.

A partial has the keys `k0`, `k1`, ..., then what says where in time its rows belong (a slice, the ends of a piece of a
session, nothing), then the accumulators. Its first columns are the keys, so the exchange hashes positions 0 to
len(keys) - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec
from operators.aggregates.layout import AccumulatorLayout
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, positional
from operators.kernel import PerBlock, tag_of
from operators.names import columns, key_columns
from operators.sql import Sql


class PartialAggregate(KernelDefaults):
    """The base of kernels that aggregate the rows of a block by `keys`; each of them is a dataclass with these fields.

    `append` says that the input never retracts (all weights are 1), which lets more aggregates be folded.
    """

    __slots__ = ()

    input: pa.Schema
    keys: tuple[int, ...]
    aggregates: tuple[AggregateSpec, ...]
    append: bool

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """The rows that are aggregated."""
        return (self.input,)

    @property
    def output(self) -> pa.Schema:
        """The columns of `partial_types`, by position."""
        return positional(partial_types(self).values())

    @property
    def piecewise(self) -> bool:
        return True

    def per_block(self) -> PerBlock:
        fields: Any = self  # a dataclass, as every kernel is
        tagged = replace(fields, input=self.input.append(tag_of(self.input)), keys=(*self.keys, len(self.input)))
        return PerBlock(tagged, len(self.keys))

    @property
    def windowed(self) -> bool:
        """Whether the rows are those of windows, whose partials may be put together in any order."""
        return True

    @property
    def number(self) -> str:
        """The column that numbers rows by their arrival, beside those of the input; empty where there is none."""
        return ""

    def times(self) -> tuple[str, ...]:
        """Return the names of the BIGINT columns between the keys and the accumulators."""
        return ()

    def partials(self, rows: pa.Table, times: Sequence[str], sql: Sql) -> pa.Table:
        """Aggregate `rows` by the keys and by `times`, an expression for each of the columns of `times()`."""
        by = [*zip(columns(self.keys), key_names(self), strict=True), *zip(times, self.times(), strict=True)]
        found = sql(layout_of(self).partials(by, "changes"), {"changes": rows})
        return as_changes(weigh(found.rename_columns(self.output.names), 1), self.output)


@lru_cache(maxsize=256)
def layout_of(partial: PartialAggregate) -> AccumulatorLayout:
    """Return how the accumulators of `partial` are laid out."""
    return AccumulatorLayout(partial.input, partial.aggregates, partial.append, partial.windowed, partial.number)


def key_names(partial: PartialAggregate) -> list[str]:
    """Return the names of the keys: k0, k1, ..."""
    return key_columns(len(partial.keys))


def key_types(partial: PartialAggregate) -> dict[str, pa.DataType]:
    """Return the keys' types by name."""
    types = [partial.input.field(position).type for position in partial.keys]
    return dict(zip(key_names(partial), types, strict=True))


def partial_types(partial: PartialAggregate) -> dict[str, pa.DataType]:
    """Return the columns of a partial by name: the keys, the times, then what the layout keeps."""
    times = {name: pa.int64() for name in partial.times()}
    return key_types(partial) | times | layout_of(partial).partial_types()
