"""Finds the fields of messages in the bytes of a block of records, a field of all records at a time.

A message is a row of tags and values in any order: https://protobuf.dev/programming-guides/encoding/. Writers write
fields in the order of their numbers, so that the lowest tag of those that come next is that of most messages; the
messages that have it are read a step further, all of them at once. Where too few go together to be worth that, each is
read to its end by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from service.formats.contract import DeadLetter
from service.formats.varints import LONGEST, PADDING, Ints, Octets, Words, numbers, words_of

Flags = np.ndarray[Any, np.dtype[np.bool_]]

VARINT, EIGHT, BYTES, GROUP, END, FOUR = range(6)
"""How a value is written: the lowest three bits of a tag."""

_FEW = 48
"""MessageItems below which reading one by one is faster than a step for all of them: a step costs as much as some fifty
fields that are read one by one."""

_DEEPEST = 100
"""Groups within groups: as many as Protocol Buffers' own libraries take."""

_LONGEST_TAG = 5
"""Bytes of the longest tag, a number of 32 bits."""

TOO_SHORT = "the record ends in the middle of a value"
TOO_LONG = "a number has more than ten bytes"
NO_TAG = "there is no tag of a field"
NO_LENGTH = "the length of a text, of bytes or of a message is not possible"
NO_END = "a group does not end, or another one does"


class _Broken(Exception):
    """A message that cannot be read: why, and at which byte of the block."""

    def __init__(self, why: str, at: int) -> None:
        self.why, self.at = why, at


@dataclass(slots=True)
class Spans:
    """The places of messages: each is of an owner, of which one may have several, and each owner is of a record."""

    at: Ints
    end: Ints
    owner: Ints
    record: Ints
    """By owner."""


@dataclass(slots=True)
class FieldValues:
    """The values of a field, in the order in which they are written: where each begins, its number (of bytes and
    messages, the length), how it is written, and whose it is."""

    at: Ints
    number: Words
    form: Octets
    owner: Ints

    def __len__(self) -> int:
        return len(self.at)

    def some(self, chosen: Any) -> FieldValues:
        """Return those at these positions."""
        return FieldValues(self.at[chosen], self.number[chosen], self.form[chosen], self.owner[chosen])


NOTHING = FieldValues(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.int64))


def together(parts: Sequence[FieldValues]) -> FieldValues:
    """Return the values of several parts in the order in which they are written, that of their owners, too."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NOTHING
    made = FieldValues(
        np.concatenate([p.at for p in parts]),
        np.concatenate([p.number for p in parts]),
        np.concatenate([p.form for p in parts]),
        np.concatenate([p.owner for p in parts]),
    )
    return made.some(np.argsort(made.at, kind="stable"))


class MessageBlock:
    """The bytes of a block of records, and what was found wrong with some of them (`wrong`, by record)."""

    def __init__(self, data: Octets, starts: Ints, ends: Ints) -> None:
        self.data = np.concatenate([data, np.zeros(PADDING, dtype=np.uint8)])
        self.words = words_of(self.data)
        self.buffer = pa.py_buffer(self.data)
        self.starts, self.ends = starts, ends
        self.wrong: dict[int, DeadLetter] = {}
        self._beyond = len(data)
        self._octets = self.data.data

    def records(self) -> Spans:
        """Return every record."""
        every = np.arange(len(self.starts))
        return Spans(self.starts, self.ends, every, every)

    def fail(self, records: Ints, why: str, at: Ints | None = None, reason: str = "bad-protobuf") -> None:
        """Note that records are wrong, at these bytes of the block, unless something was noted of them before."""
        for place, record in enumerate(map(int, records)):
            where = "" if at is None else f" (at byte {int(at[place]) - int(self.starts[record])})"
            self.wrong.setdefault(record, DeadLetter(reason, why + where))

    def fields(self, spans: Spans, wanted: Mapping[int, frozenset[int]]) -> dict[int, FieldValues]:
        """Return the values of the fields of these numbers, each of which is written in one of the given forms.

        What is written in another form is passed over, as is a field that is not wanted.
        """
        found: dict[int, list[FieldValues]] = {}
        alone = _Alone(self._octets, wanted)
        there = spans.at < spans.end
        at, end, owner = spans.at[there], spans.end[there], spans.owner[there]
        tag, at, more = self._tags(at, end, spans.record[owner])
        if not more.all():
            at, end, owner, tag = at[more], end[more], owner[more], tag[more]
        while len(at):
            least = int(tag.min())
            chosen = tag == least
            every = bool(chosen.all())
            here: Any = slice(None) if every else np.flatnonzero(chosen)
            count = len(at) if every else len(here)
            form = least & 7
            if count < _FEW or form == GROUP:
                for place in np.arange(len(at))[here]:
                    try:
                        alone.read(int(tag[place]), int(at[place]), int(end[place]), int(owner[place]))
                    except _Broken as error:
                        self.fail(spans.record[owner[place : place + 1]], error.why, np.array([error.at]))
                kept = ~chosen
                at, end, owner, tag = at[kept], end[kept], owner[kept], tag[kept]
                continue
            start, whose = at[here], owner[here]
            value, begin, stop, why = self._step(form, start, end[here])
            good = stop <= end[here]
            if not good.all():
                self.fail(spans.record[whose[~good]], why, start[~good])
                stop = np.where(good, stop, end[here])
            if form in wanted.get(least >> 3, ()):
                values = FieldValues(begin, value, np.full(count, form, np.uint8), whose)
                found.setdefault(least >> 3, []).append(values if good.all() else values.some(good))
            next_tag, behind, going = self._tags(stop, end[here], spans.record[whose])
            more = going
            if every:
                at, tag = behind, next_tag  # new ones: the values that were found hold the old
            else:
                at[here], tag[here] = behind, next_tag
                more = np.ones(len(at), dtype=np.bool_)
                more[here] = going
            if not more.all():
                at, end, owner, tag = at[more], end[more], owner[more], tag[more]
        for number, values in alone.found().items():
            found.setdefault(number, []).append(values)
        return {number: together(parts) for number, parts in found.items()}

    def _step(self, form: int, at: Ints, end: Ints) -> tuple[Words, Ints, Ints, str]:
        """Return the number, beginning and end of the value at each place, and what is wrong where it ends beyond."""
        if form in (EIGHT, FOUR):
            return np.zeros(len(at), dtype=np.uint64), at, at + (8 if form == EIGHT else 4), TOO_SHORT
        if form not in (VARINT, BYTES):
            return np.zeros(len(at), dtype=np.uint64), at, end + 1, NO_END if form == END else NO_TAG
        value, size, long, tenth = numbers(self.words, at)
        begin = at + size
        if len(long):
            begin[long[tenth >= 0x80]] = self._beyond + LONGEST
        if form == VARINT:
            return value, at, begin, TOO_SHORT
        possible = (value < (1 << 31)) & (begin <= end)
        stop = np.where(possible, begin + value.view(np.int64), self._beyond + LONGEST)
        return value, np.minimum(begin, self._beyond), stop, NO_LENGTH

    def _tags(self, at: Ints, end: Ints, record: Ints) -> tuple[Ints, Ints, Flags]:
        """Return the tag at each place, the place behind it, and whether there is one that a value follows."""
        more = at < end
        first = self.data[at]
        if (first < 0x80).all():
            tag, behind = first.astype(np.int64), at + 1
            bad = more & ((tag < 8) | (behind > end))
        else:
            value, size, _, _ = numbers(self.words, at)
            tag, behind = value.view(np.int64), at + size
            bad = more & ((size > _LONGEST_TAG) | (value >= (1 << 32)) | (tag < 8) | (behind > end))
        if bad.any():
            self.fail(record[bad], NO_TAG, at[bad])
            more &= ~bad
        return tag, behind, more

    def slices(self, values: FieldValues) -> pa.Array:
        """Return the bytes of values that are bytes."""
        if len(values) == 0:
            return pa.array([], pa.binary())
        edges = np.empty(2 * len(values), dtype=np.int32)
        edges[0::2], edges[1::2] = values.at, values.at + values.number.view(np.int64)
        every = pa.Array.from_buffers(pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), self.buffer])
        return every.take(pa.array(np.arange(0, len(edges) - 1, 2)))


class _Alone:
    """Reads messages one by one."""

    def __init__(self, data: memoryview, wanted: Mapping[int, frozenset[int]]) -> None:
        self._data = data
        self._wanted = wanted
        self._rows: dict[int, list[tuple[int, int, int, int]]] = {}

    def read(self, tag: int, at: int, end: int, owner: int) -> None:
        """Read a message from the value of its tag on to its end. Raises _Broken."""
        while True:
            number, form = tag >> 3, tag & 7
            value, begin, stop = self._value(number, form, at, end)
            if form in self._wanted.get(number, ()):
                self._rows.setdefault(number, []).append((begin, value, form, owner))
            if stop == end:
                return
            tag, at = self._tag(stop, end)

    def found(self) -> dict[int, FieldValues]:
        """Return the values of each field."""
        made = {}
        for number, rows in self._rows.items():
            at, value, form, owner = zip(*sorted(rows), strict=True)
            made[number] = FieldValues(
                np.array(at, np.int64), np.array(value, np.uint64), np.array(form, np.uint8), np.array(owner, np.int64)
            )
        return made

    def _value(self, number: int, form: int, at: int, end: int) -> tuple[int, int, int]:
        """Return the number, beginning and end of a value."""
        if form == VARINT:
            value, stop = self._varint(at, end)
            return value, at, stop
        if form in (EIGHT, FOUR):
            stop = at + (8 if form == EIGHT else 4)
            if stop > end:
                raise _Broken(TOO_SHORT, at)
            return 0, at, stop
        if form == BYTES:
            value, begin = self._varint(at, end)
            if value > end - begin:
                raise _Broken(NO_LENGTH, at)
            return value, begin, begin + value
        if form == GROUP:
            return 0, at, self._behind_group(number, at, end)
        raise _Broken(NO_END if form == END else NO_TAG, at)

    def _behind_group(self, number: int, at: int, end: int) -> int:
        open_groups = [number]
        while True:
            if at >= end:
                raise _Broken(NO_END, at)
            tag, at = self._tag(at, end)
            number, form = tag >> 3, tag & 7
            if form == END:
                if open_groups.pop() != number:
                    raise _Broken(NO_END, at)
                if not open_groups:
                    return at
            elif form == GROUP:
                open_groups.append(number)
                if len(open_groups) > _DEEPEST:
                    raise _Broken("groups are nested too deeply", at)
            else:
                at = self._value(number, form, at, end)[2]

    def _tag(self, at: int, end: int) -> tuple[int, int]:
        tag, behind = self._varint(at, end)
        if tag < 8 or tag >= 1 << 32 or behind - at > _LONGEST_TAG:
            raise _Broken(NO_TAG, at)
        return tag, behind

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        for place in range(at, min(end, at + LONGEST)):
            byte = self._data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, place + 1
            shift += 7
        raise _Broken(TOO_LONG if at + LONGEST <= end else TOO_SHORT, at)
