"""The state of a range of slots, put together from the states of other ranges: blocks stay what and where they are.

Law: a state answers for the keys in its slots as the states did that it is made of. A new manifest lists their blocks,
each with the part of it that is seen, and nothing is read or written; the merges to come write what they read of it.

Sort keys begin with the slot. So the runs of states whose slots do not overlap make one run, end to end, where rows are
sorted by key: the newest with the newest, from the oldest on. Rows that are sorted by time stay in runs of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

from operators.names import SORT_KEY
from operators.slots import KEYLESS, first_hash
from operators.state.block import Block, Clip, block_name
from operators.state.compaction import Run
from operators.state.contents import Contents, TableKind, TraceSpec
from operators.state.operator_state import contents_of, manifest_of


class StatePart(NamedTuple):
    """A state that was sealed: its slots and its manifest, None where nothing was kept yet."""

    slots: range
    manifest: bytes | None


class ClippedState(NamedTuple):
    """A manifest, and what its blocks were called before: by their new names the number of the part, and the name."""

    manifest: bytes
    blocks: Mapping[str, tuple[int, str]]


def clipped(
    specs: Mapping[str, TraceSpec], order: tuple[int, ...] | None, parts: Sequence[StatePart], slots: range
) -> ClippedState:
    """Return the state of one operator for `slots`, from `parts` that hold all of them, in the order of their slots.

    `order` is as in `Trace`.
    """
    known: list[dict[str, Any]] = [
        {"notes": {}, "traces": {}} if part.manifest is None else json.loads(part.manifest) for part in parts
    ]
    notes: dict[str, int] = {}
    for each in known:
        for name, value in each["notes"].items():
            notes[name] = max(value, notes.get(name, value))
    names = _Names()
    traces = {
        name: _joined(
            [
                _part(spec, order, contents_of(each["traces"].get(name)), part.slots, slots, names.of(number))
                for number, (part, each) in enumerate(zip(parts, known, strict=True))
            ],
            spec.kind,
        )
        for name, spec in specs.items()
    }
    return ClippedState(manifest_of(len(names.given), notes, traces), names.given)


class _Names:
    """Names for blocks that come from several states."""

    def __init__(self) -> None:
        self.given: dict[str, tuple[int, str]] = {}

    def of(self, part: int) -> _PartNames:
        return _PartNames(self, part)


class _PartNames(NamedTuple):
    names: _Names
    part: int

    def renamed(self, block: Block) -> Block:
        given = self.names.given
        name = block_name(len(given))
        given[name] = (self.part, block.id)
        return replace(block, id=name)


def _part(
    spec: TraceSpec, order: tuple[int, ...] | None, contents: Contents, had: range, wanted: range, names: _PartNames
) -> Contents:
    """What of `contents`, of a state with the slots `had`, is in the slots that are `wanted`.

    Merges end where they are: what has been merged and what has not are runs like others.
    """
    whole = had.start >= wanted.start and had.stop <= wanted.stop
    runs: list[Run] = []
    for run in contents.runs.values():
        seen = [block if whole else _seen(spec, order, block, had, wanted) for block in run]
        kept = tuple(names.renamed(block) for block in seen if block is not None)
        if kept:
            runs.append(kept)
    counted = whole or not runs or spec.kind is not TableKind.KEYED or spec.timestamp is not None
    live = contents.live if runs else 0
    return Contents(dict(enumerate(runs)), [], len(runs), contents.expired_upto, live if counted else None)


def _seen(spec: TraceSpec, order: tuple[int, ...] | None, block: Block, had: range, wanted: range) -> Block | None:
    """What is seen of one block of a state with the slots `had`; None for nothing."""
    before = range(block.clip.first, block.clip.stop) if block.clip is not None else had
    first, stop = max(before.start, wanted.start), min(before.stop, wanted.stop)
    if spec.kind is TableKind.TIME_ORDERED:
        assert spec.key is not None
        names = spec.key if order is None or spec.key_is_hash else tuple(spec.key[i] for i in order)
        if not names:
            return block if KEYLESS in wanted else None
        if first >= stop:
            return None
        columns = tuple(spec.stored.get_field_index(name) for name in names)
        share = (stop - first) / len(before)
        clip = Clip(first, stop, columns, spec.key_is_hash)
        return replace(block, rows=_part_of(block.rows, share), bytes=_part_of(block.bytes, share), clip=clip)
    low, high = max(block.low, block.start, first_hash(first)), min(block.high, first_hash(stop) - 1)
    if first >= stop or low > high:
        return None
    if low == max(block.low, block.start) and high == block.high:
        return block
    clip = Clip(first, stop, (spec.stored.get_field_index(SORT_KEY),), True)
    share = (high - low + 1) / (block.high - block.low + 1)
    rows, size = _part_of(block.rows, share), _part_of(block.bytes, share)
    return replace(block, rows=rows, bytes=size, low=max(block.low, low), high=high, clip=clip)


def _part_of(count: int, share: float) -> int:
    """About that share of `count`, and at least one."""
    return max(1, round(count * share))


def _joined(parts: Sequence[Contents], kind: TableKind) -> Contents:
    """One trace of several whose slots do not overlap."""
    oldest_first = [list(reversed(part.runs.values())) for part in parts]
    runs: list[Run] = []
    for level in zip_longest(*oldest_first, fillvalue=()):
        if kind is TableKind.TIME_ORDERED:
            runs += [run for run in level if run]
        else:
            runs.append(tuple(block for run in level for block in run))
    runs.reverse()
    counts = [part.live for part in parts]
    live = None if None in counts else sum(count for count in counts if count is not None)
    expired = max(part.expired_upto for part in parts)
    return Contents(dict(enumerate(runs)), [], len(runs), expired, live)
