"""Multisets of the values of a column: what is read from each, and where its values stand in partials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from operators.aggregates.accumulator import PlacedAccumulator
from operators.aggregates.value_lists import ValueList
from operators.names import VALUE
from operators.sql_text import all_named, inner, over, select


@dataclass(frozen=True, slots=True)
class Extreme:
    """MIN or MAX of a set, kept in the accumulator `name`; `text` computes it from all values of a group.

    In a set in the order of arrival the least or greatest is a ROW of the number of an arrival, s, and a value, v.
    """

    function: str
    name: str
    text: str


@dataclass(slots=True)
class ValueSet:
    """The multiset of the values of one column (under one filter), and what is read from it: accumulators of its
    distinct values, extremes and lists. NULL is among the values if `nulls`; if `repeats` it matters how often a value
    is there, not only that it is. If `ordered`, the numbers of the arrivals of each value are kept."""

    x: str
    type: pa.DataType
    filter: str | None
    nulls: bool = False
    repeats: bool = False
    ordered: bool = False
    accumulators: list[PlacedAccumulator] = field(default_factory=list)
    extremes: list[Extreme] = field(default_factory=list)
    lists: list[ValueList] = field(default_factory=list)

    def ranked(self, by: Sequence[str], source: str) -> str:
        """Return the relation `source` of the values of each group `by`, with what the lists read beside each value."""
        clauses = {"order": over(by, [VALUE]), "all": over(by)}
        beside = {name: text.format(**clauses) for each in self.lists for name, text in each.beside.items()}
        return inner(select(["*", *all_named(beside.values(), beside)], source)) if beside else source


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """The place of a set in partials: its tag, and the columns of a value and of how often it came."""

    tag: int
    value: str
    times: str
