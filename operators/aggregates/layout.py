"""The storage of a query's aggregates: which accumulators, in which columns, and which multisets of values.

A *partial* is a row that stands for rows of one key. A plain partial (tag 0) has the columns of all accumulators over
rows; a value partial (tag i + 1) says how often a value has come or gone in each set of group i. `AccumulatorLayout`
gives the names of all columns and the SQL texts that create, combine, merge and read them.

Sets of one column that differ in their filters are a group, and sets of one type share the column of their values:
rows are grouped by the value once, partials are narrow, and a value is kept once for all sets of its group. In windows
each set stands alone, since their partials are state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument, PlacedAccumulator
from operators.aggregates.functions import (
    AGGREGATES,
    ARRIVED_END,
    BITS,
    ENDS,
    EXTREMES,
    LISTS,
    WHOLES,
    AggregateFunction,
    AggregateSpec,
    arrivals,
    follows_arrival,
    refusal,
)
from operators.aggregates.numbered_values import by_number
from operators.aggregates.sums import counted
from operators.aggregates.value_lists import list_type, lists_nulls, value_list
from operators.aggregates.value_sets import Extreme, ValuePlace, ValueSet
from operators.columns import duckdb_type
from operators.names import NUMBERS, TAG, TIMES, VALUE, WEIGHT, column, times_of, value_of
from operators.sql_text import either, every, named, of_those, select, union_all

ROWS = "p0"
"""The accumulator that counts the rows of a group; a group without rows does not exist."""


@dataclass(slots=True)
class AggregateResult:
    """An aggregate, and the columns from which its answer is read."""

    function: AggregateFunction
    argument: Argument
    columns: list[tuple[str, ...]]


class AccumulatorLayout:
    """The accumulators of `aggregates` over rows of `input`, a block that only inserts (`append`) or not.

    Values are kept in the order of arrival only where groups are (not `windowed`), or where `number` is a column that
    numbers the rows. Raises ValueError for an aggregate that is not computed.
    """

    def __init__(
        self,
        input: pa.Schema,
        aggregates: Sequence[AggregateSpec],
        append: bool,
        windowed: bool = True,
        number: str = "",
    ) -> None:
        self.append = append
        self.windowed = windowed
        self.number = number
        self.arrivals = ""
        self.types: dict[str, pa.DataType] = {}
        self.accumulators: list[PlacedAccumulator] = []
        self.sets: list[ValueSet] = []
        self.results: list[AggregateResult] = []
        self._place(self.accumulators, counted(Argument(x=None, type=None, filter=None, append=append)))
        for aggregate in aggregates:
            self._arrange(input, aggregate)
        self.groups = self._grouped()
        self.places = self._placed()

    def _grouped(self) -> list[list[int]]:
        """The positions of the sets of each tag: those of one group."""
        groups: dict[object, list[int]] = {}
        for i, values in enumerate(self.sets):
            alone = self.windowed or values.ordered
            groups.setdefault(i if alone else (values.x, values.nulls), []).append(i)
        return list(groups.values())

    def _placed(self) -> list[ValuePlace]:
        """The place of each set."""
        shared: dict[pa.DataType, str] = {}
        places: dict[int, ValuePlace] = {}
        for tag, group in enumerate(self.groups, 1):
            for place, i in enumerate(group):
                name = value_of(i) if self.windowed else shared.setdefault(self.sets[i].type, value_of(i))
                places[i] = ValuePlace(tag, name, times_of(place))
        return [places[i] for i in range(len(self.sets))]

    def _arrange(self, input: pa.Schema, aggregate: AggregateSpec) -> None:
        distinct = aggregate.distinct or aggregate.function == "APPROX_COUNT_DISTINCT"
        reason = refusal(aggregate.function, append=self.append, merged=self.windowed)
        if reason is not None:
            raise ValueError(reason)
        function = AGGREGATES[aggregate.function]
        condition = None if aggregate.filter is None else column(aggregate.filter)
        x, type_ = None, None
        if aggregate.arguments:
            (position,) = aggregate.arguments
            x, type_ = column(position), input.field(position).type
        extreme, listed = aggregate.function in EXTREMES, aggregate.function in (*LISTS, *BITS, *WHOLES)
        if x is None or type_ is None or self._accumulates(aggregate.function, distinct):
            if self.number and follows_arrival(aggregate.function, distinct=distinct, append=self.append):
                function = by_number(aggregate.function)
            argument = Argument(
                x=x,
                type=type_,
                filter=condition,
                append=self.append,
                constants=aggregate.constants,
                number=self.number,
            )
            names = [self._place(self.accumulators, accumulator) for accumulator in function.accumulators(argument)]
            self.results.append(AggregateResult(function, argument, names))
            return
        if aggregate.function in ENDS:
            self._arrange_end(aggregate.function, x, type_, condition)
            return
        values = self._set(x, type_, condition, nulls=listed and lists_nulls(aggregate))
        argument = Argument(x=VALUE, type=type_, filter=None, append=False, constants=aggregate.constants)
        if extreme:
            names = [(self._name(type_),)]
            values.extremes.append(Extreme(aggregate.function, names[0][0], f"{aggregate.function}({VALUE})"))
        elif listed:
            names = [(self._name(list_type(aggregate, type_)),)]
            values.lists.append(value_list(aggregate, distinct, names[0][0]))
            values.repeats |= not distinct and aggregate.function in (*LISTS, "PERCENTILE", "COLLECT")
        else:
            names = [self._place(values.accumulators, accumulator) for accumulator in function.accumulators(argument)]
        self.results.append(AggregateResult(function, argument, names))

    def _arrange_end(self, function: str, x: str, type_: pa.DataType, condition: str | None) -> None:
        """The first or last value of a set in the order of arrival: that with the least or greatest number."""
        (self.arrivals,) = self._place(self.accumulators, arrivals())
        values = self._set(x, type_, condition, nulls=False, ordered=True)
        name = self._name(pa.struct([("s", pa.int64()), ("v", type_)]))
        extreme, place = ("MIN", 1) if function == "FIRST_VALUE" else ("MAX", -1)
        arrived = f"struct_pack(s := {NUMBERS}[{place}], v := {VALUE})"
        values.extremes.append(Extreme(extreme, name, f"{extreme}({arrived})"))
        argument = Argument(x=VALUE, type=type_, filter=None, append=False)
        self.results.append(AggregateResult(ARRIVED_END, argument, [(name,)]))

    def _accumulates(self, function: str, distinct: bool) -> bool:
        """Whether the rows can be folded without a multiset of their values."""
        if function in (*EXTREMES, *BITS, *ENDS):
            return self.append
        if function in WHOLES:
            return False
        return not distinct and (self.append or function not in LISTS)

    def _name(self, type_: pa.DataType) -> str:
        name = f"p{len(self.types)}"
        self.types[name] = type_
        return name

    def _place(self, accumulators: list[PlacedAccumulator], accumulator: Accumulator) -> tuple[str, ...]:
        for placed in accumulators:
            if placed.accumulator == accumulator:
                return placed.names
        names = tuple(self._name(type_) for type_ in accumulator.types)
        accumulators.append(PlacedAccumulator(accumulator, names))
        return names

    def _set(self, x: str, type_: pa.DataType, condition: str | None, nulls: bool, ordered: bool = False) -> ValueSet:
        for values in self.sets:
            if (values.x, values.filter, values.nulls, values.ordered) == (x, condition, nulls, ordered):
                return values
        self.sets.append(ValueSet(x, type_, condition, nulls, ordered=ordered))
        return self.sets[-1]

    @property
    def ordered(self) -> bool:
        """Whether the order matters in which partials arrive."""
        return any(values.ordered for values in self.sets)

    # -- partials

    @property
    def plain(self) -> list[str]:
        """The columns of accumulators over rows."""
        return [name for placed in self.accumulators for name in placed.names]

    def partial_types(self) -> dict[str, pa.DataType]:
        """Return the columns of a partial after its key, by name."""
        types = {name: self.types[name] for name in self.plain}
        if not self.sets:
            return types
        values = {place.value: each.type for place, each in zip(self.places, self.sets, strict=True)}
        return {TAG: pa.int8(), **types, **values, **dict.fromkeys(self._times, pa.int64())}

    @property
    def _times(self) -> list[str]:
        """The columns that count values: as many as sets in the largest group."""
        return [times_of(place) for place in range(max(map(len, self.groups)))]

    def partials(self, keys: Sequence[tuple[str, str]], source: str) -> str:
        """Return the statement that pre-aggregates the rows of `source` by `keys` (expression, name)."""
        key = [named(text, name) for text, name in keys]
        by = [str(i + 1) for i in range(len(keys))]
        starts = [text for placed in self.accumulators for text in placed.create()]
        if not self.sets:
            return select([*key, *starts], source, group_by=by)
        nothing = [_null(self.types[name], name) for name in self.plain]
        types = self.partial_types()
        columns = list(dict.fromkeys(place.value for place in self.places))
        empty = {name: _null(types[name], name) for name in columns}
        never = {name: named("CAST(0 AS BIGINT)", name) for name in self._times}
        tag = named("CAST(0 AS TINYINT)", TAG)
        parts = [select([*key, tag, *starts, *empty.values(), *never.values()], source, group_by=by)]
        for number, group in enumerate(self.groups, 1):
            first = self.sets[group[0]]
            value = {self.places[group[0]].value: named(first.x, self.places[group[0]].value)}
            items = [*key, named(f"CAST({number} AS TINYINT)", TAG), *nothing, *(empty | value).values()]
            where = every([None if first.nulls else f"{first.x} IS NOT NULL", self._any_filter(group)])
            if first.ordered:  # each row by itself, in the order of arrival
                there = every([where, f"{WEIGHT} <> 0"])
                times = never | {TIMES: named(WEIGHT, TIMES)}
                parts.append(select([*items, *times.values()], source, where=there))
                continue
            counts = {self.places[i].times: self._count(self.sets[i].filter if len(group) > 1 else None) for i in group}
            times = never | {name: named(text, name) for name, text in counts.items()}
            remains = either(f"{name} <> 0" for name in counts)
            by_value = [*by, first.x]
            parts.append(select([*items, *times.values()], source, where=where, group_by=by_value, having=remains))
        return union_all(parts)

    def _any_filter(self, group: Sequence[int]) -> str:
        """The condition of the rows that some set of a group takes."""
        filters = [self.sets[i].filter for i in group]
        given = [each for each in filters if each is not None]
        return either(given) if len(given) == len(filters) else "true"

    def _count(self, condition: str | None) -> str:
        """The number of insertions less the retractions of a value, in the rows of a condition."""
        if self.append:
            return of_those("COUNT", "*", condition)
        return f"CAST(COALESCE({of_those('SUM', WEIGHT, condition)}, 0) AS BIGINT)"

    # -- accumulators

    def all_accumulators(self) -> list[PlacedAccumulator]:
        """Return the accumulators over rows and over distinct values."""
        return [*self.accumulators, *(placed for values in self.sets for placed in values.accumulators)]

    def combined(self) -> list[str]:
        """Return SELECT items that combine many rows of accumulators of one key."""
        return [text for placed in self.all_accumulators() for text in placed.combine()]

    def read(self, prefix: str, names: Sequence[str], types: Sequence[pa.DataType]) -> list[str]:
        """Return SELECT items that read the answers, as `names`, from accumulators whose names begin with `prefix`."""
        items = []
        for answer, name, type_ in zip(self.results, names, types, strict=True):
            kept = [[prefix + each for each in group] for group in answer.columns]
            items.append(named(answer.function.finish(answer.argument, kept, type_), name))
        return items


def _null(type_: pa.DataType, name: str) -> str:
    return named(f"CAST(NULL AS {duckdb_type(type_)})", name)
