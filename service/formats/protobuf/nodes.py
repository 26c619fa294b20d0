"""Readers of a table's columns, and of nested ones, from the fields of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.protobuf.values import Column, single, unpacked
from service.formats.protobuf.wire import NOTHING, FieldValues, MessageBlock, Spans
from service.formats.varints import Ints

_FIRST, _END = -62_135_596_800, 253_402_300_800
"""Seconds of the years 1 and 10000: every TIMESTAMP is from the one on and before the other."""


class FieldReader(Protocol):
    """Reads one column out of the values of a field."""

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        """Return a value for each owner, whose records are `record`."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A column for which there is no field."""

    type: pa.DataType

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        return pa.nulls(len(record), self.type)


@dataclass(frozen=True, slots=True)
class Single:
    """One value: the last one that is written, else the default, which may be NULL."""

    column: Column
    default: pa.Scalar

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        count = len(record)
        if len(values) == count and (count == 0 or _rising(values.owner)):
            return self.column(values, block, record)
        last = np.full(count, -1, dtype=np.int64)
        last[values.owner] = np.arange(len(values))
        there = last >= 0
        found = self.column(values.some(last[there]), block, record)
        place = np.cumsum(there) - 1
        made = found.take(pa.array(place, mask=~there))
        # A value that was found wrong is NULL, too, and its record goes no further.
        return pc.fill_null(made, self.default) if self.default.is_valid and made.null_count else made


def _rising(owner: Ints) -> bool:
    return bool((np.diff(owner) > 0).all())


@dataclass(frozen=True, slots=True)
class MessageFields:
    """The columns that are read out of messages of a type. `forms` says how each wanted number may be written, `oneofs`
    of which numbers one at most is there, `closed` which numbers of an enum count."""

    numbers: tuple[int, ...]
    nodes: tuple[FieldReader, ...]
    forms: Mapping[int, frozenset[int]]
    oneofs: tuple[tuple[int, ...], ...]
    closed: Mapping[int, tuple[int, ...]]

    def columns(self, block: MessageBlock, spans: Spans) -> list[pa.Array]:
        """Return a column for each node, a value for each owner."""
        found = block.fields(spans, self.forms) if self.forms else {}
        for number, known in self.closed.items():
            if number in found:
                found[number] = _known(found[number], known, block, spans.record)
        for group in self.oneofs:
            _keep_last(group, found, len(spans.record))
        return [
            node.read(found.get(number, NOTHING), block, spans.record)
            for number, node in zip(self.numbers, self.nodes, strict=True)
        ]


def _known(values: FieldValues, known: tuple[int, ...], block: MessageBlock, record: Ints) -> FieldValues:
    """Return those whose number the enum names: a closed one takes others for fields that it does not know."""
    values = unpacked("enum", values, block, record)
    good = np.isin(single("enum", values, block), known)
    return values if good.all() else values.some(good)


def _keep_last(group: tuple[int, ...], found: dict[int, FieldValues], count: int) -> None:
    """Keep, of fields of which one at most is there, what was written behind the last of the others."""
    there = [number for number in group if number in found and len(found[number])]
    if len(there) < 2:
        return
    last = {}
    for number in there:
        last[number] = np.full(count, -1, dtype=np.int64)
        last[number][found[number].owner] = found[number].at  # they ascend
    for number in there:
        others = np.max([last[each] for each in there if each != number], axis=0)
        values = found[number]
        good = values.at > others[values.owner]
        if not good.all():
            found[number] = values.some(good)


@dataclass(frozen=True, slots=True)
class Struct:
    """A message as a ROW: NULL where there is none, unless `always` makes one of defaults. What is written of one
    message in several parts is put together, as Protocol Buffers want it."""

    fields: MessageFields
    type: pa.DataType
    always: bool

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        columns, taken = messages(self.fields, values, block, record, always=self.always)
        made = pa.StructArray.from_arrays(columns, fields=[self.type.field(i) for i in range(self.type.num_fields)])
        return made if taken is None else made.take(taken)


@dataclass(frozen=True, slots=True)
class Instant:
    """google.protobuf.Timestamp as a TIMESTAMP; digits beyond its precision are cut off."""

    fields: MessageFields
    precision: int
    always: bool

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        # Its record says which one is wrong.
        (seconds, nanos, owner), taken = _parts(self.fields, values, block, record, always=self.always)
        second, nano = seconds.to_numpy(zero_copy_only=False), nanos.to_numpy(zero_copy_only=False)
        good = (second >= _FIRST) & (second < _END) & (nano >= 0) & (nano < 1_000_000_000)
        if not good.all():
            for place in np.flatnonzero(~good):
                why = f"{second[place]} seconds and {nano[place]} nanoseconds are no TIMESTAMP"
                block.fail(owner[place : place + 1], why, reason="wrong-type")
            second, nano = np.where(good, second, 0), np.where(good, nano, 0)
        step = 10 ** (6 - self.precision) if self.precision < 6 else 1
        micros = (second * 1_000_000 + nano // 1000) // step * step
        made = pa.array(micros.astype(np.int64)).view(pa.timestamp("us"))
        return made if taken is None else made.take(taken)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A wrapper, such as google.protobuf.Int64Value, as the value in it."""

    fields: MessageFields
    always: bool

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        (made,), taken = messages(self.fields, values, block, record, always=self.always)
        return made if taken is None else made.take(taken)


def messages(
    fields: MessageFields, values: FieldValues, block: MessageBlock, record: Ints, *, always: bool
) -> tuple[list[pa.Array], pa.Array | None]:
    """Return the columns of the messages that are there, and which of them each owner has; None where every owner
    has its
    own."""
    (*columns, _), taken = _parts(fields, values, block, record, always=always)
    return columns, taken


def _parts(
    fields: MessageFields, values: FieldValues, block: MessageBlock, record: Ints, *, always: bool
) -> tuple[list[Any], pa.Array | None]:
    """Return what `messages` does, with the record of each message behind the columns."""
    count = len(record)
    there = np.zeros(count, dtype=np.bool_)
    there[values.owner] = True
    every = always or bool(there.all())
    place = np.arange(count) if every else np.cumsum(there) - 1
    own = record if every else record[there]
    spans = Spans(values.at, values.at + values.number.view(np.int64), place[values.owner], own)
    return [*fields.columns(block, spans), own], None if every else pa.array(place, mask=~there)


class Items(Protocol):
    """Reads the items of lists, each of which is a value of its own."""

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> tuple[pa.Array, Ints]:
        """Return the items, and the owner of each."""


@dataclass(frozen=True, slots=True)
class NumberItems:
    """Numbers, packed or not."""

    kind: str
    column: Column

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> tuple[pa.Array, Ints]:
        found = unpacked(self.kind, values, block, record)
        return self.column(found, block, record), found.owner


@dataclass(frozen=True, slots=True)
class TextItems:
    """Texts or bytes."""

    column: Column

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> tuple[pa.Array, Ints]:
        return self.column(values, block, record), values.owner


@dataclass(frozen=True, slots=True)
class MessageItems:
    """Messages, by the node of one of them."""

    node: FieldReader

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> tuple[pa.Array, Ints]:
        own = FieldValues(values.at, values.number, values.form, np.arange(len(values)))
        return self.node.read(own, block, record[values.owner]), values.owner


@dataclass(frozen=True, slots=True)
class Repeated:
    """A repeated field as an ARRAY; one without items is NULL unless `always`."""

    items: Items
    type: pa.DataType
    always: bool

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        items, owner = self.items.read(values, block, record)
        offsets, mask = _offsets(owner, len(record), always=self.always)
        return pa.ListArray.from_arrays(offsets, items, type=self.type, mask=mask)


@dataclass(frozen=True, slots=True)
class Entries:
    """A map field as a MAP, of each key its last value; one without entries is NULL unless `always`."""

    fields: MessageFields
    type: pa.DataType
    always: bool

    def read(self, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        own = FieldValues(values.at, values.number, values.form, np.arange(len(values)))
        (keys, items), _ = messages(self.fields, own, block, record[values.owner], always=True)
        if keys.null_count:
            keys = pc.fill_null(keys, "")  # of records whose text is none: a MAP has no key that is NULL
        owner = values.owner
        if len(owner) > 1:
            codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
            pairs = owner * (int(codes.max()) + 1) + codes
            _, first = np.unique(pairs[::-1], return_index=True)
            if len(first) < len(pairs):
                kept = np.sort(len(pairs) - 1 - first)
                keys, items, owner = keys.take(pa.array(kept)), items.take(pa.array(kept)), owner[kept]
        offsets, mask = _offsets(owner, len(record), always=self.always)
        return pa.MapArray.from_arrays(offsets, keys, items, type=self.type, mask=mask)


def _offsets(owner: Ints, count: int, *, always: bool) -> tuple[pa.Array, pa.Array | None]:
    """Return where the items of each owner begin, and which owners have none and are NULL for it."""
    counts = np.bincount(owner, minlength=count)
    offsets = np.zeros(count + 1, dtype=np.int32)
    counts.cumsum(out=offsets[1:])
    return pa.array(offsets), None if always else pa.array(counts == 0)
