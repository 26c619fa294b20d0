"""Records that repeat a wanted name: which of the values counts, DuckDB and Flink do not see alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.json.buffers import Flags, characters, raw, words
from service.formats.json.columns import key_pattern, quoted
from service.formats.json.escaped_keys import EscapedKeys, every_name
from service.plan.types import Array, DataType, Map, Row

_MANY = 24
"""Names from which on the keys of each object are counted. That costs reading a record once more, whatever the number
of names; a search for each name costs a pass over the whole block."""


class Repeats:
    """Picklable: tells which records may repeat one of `names`, at any depth. `allowed` is how often one may stand in
    a record's text."""

    def __init__(self, names: Sequence[str], types: Sequence[DataType], allowed: int) -> None:
        # One inside an ARRAY repeats by right: such records are then read exactly, and no harm done.
        places = Counter(every_name(names, types))
        self._names = list(places)
        self._escaped = EscapedKeys(places)
        self._allowed = allowed
        # A name that is wanted in several objects may stand in a record more often than it repeats.
        counted = len(places) >= _MANY or max(places.values(), default=0) > allowed
        self._statement = _statement(names, types) if counted else None

    def found(self, block: pa.Array, present: Mapping[str, int], sql: Sql) -> Flags:
        """Return the records of `block` that may. `present` is how many records have a value for a name, for the names
        for which that is known."""
        if self._statement is not None:
            answer: Flags = sql(self._statement, {"records": pa.table({"v": block})})["r"].to_numpy()
            return answer
        suspect = np.zeros(len(block), dtype=bool)
        if self._escaped.found(block).any():
            present = {}  # A key written with escapes gives a value, and would make up for one that repeats elsewhere.
        keys = _Keys(block)
        for name in self._names:
            if not keys.more_than(present.get(name, 0), name):
                continue  # Wherever the name was found it stands once, and nowhere else.
            repeated = "(?s:.)*?".join([key_pattern(name) + r"\s*:"] * (self._allowed + 1))
            suspect |= pc.match_substring_regex(block, repeated).to_numpy(zero_copy_only=False)
        return suspect


class _Keys:
    """The keys of all objects of a block, by their last bytes: a colon right behind a quotation mark ends one.

    Such colons are found once for all names. To search the block for each name costs a pass for each.
    """

    _WIDTH = 8
    """Bytes that are compared at once: the last ones of a key with its quotation marks."""

    def __init__(self, block: pa.Array) -> None:
        self._block = block
        self._text: bytes | None = None
        data, edges = raw(block)
        data = data[edges[0] : edges[-1]]
        colons = np.flatnonzero(data == ord(":"))
        before = data[colons - 1]
        # Behind white space the key is further away.
        self._spaced = bool((before <= ord(" ")).any())
        ends = colons[before == ord('"')]
        early = int(np.searchsorted(ends, self._WIDTH))
        self._first = [data[:end].tobytes() for end in ends[:early].tolist()]
        self._words = words(data, self._WIDTH)[ends[early:] - self._WIDTH]

    def more_than(self, often: int, name: str) -> bool:
        """Whether the name may be a key more often than that."""
        spelled = json.dumps(name, ensure_ascii=False).encode()
        if not self._spaced and name.isascii() and self._as_last(spelled[-self._WIDTH :]) <= often:
            return False
        if self._text is None:
            self._text = characters(self._block)
        if not name.isascii() and b"\\u" in self._text:
            return True
        return self._text.count(spelled) > often

    def _as_last(self, last: bytes) -> int:
        """Return how many keys end so."""
        shift = np.uint64(8 * (self._WIDTH - len(last)))
        word = np.uint64(int.from_bytes(last.rjust(self._WIDTH, b"\0"), "little"))
        last_bytes = self._words >> shift << shift if shift else self._words
        return int(np.count_nonzero(last_bytes == word)) + sum(text.endswith(last) for text in self._first)


def _statement(names: Sequence[str], types: Sequence[DataType]) -> str | None:
    """The statement that tells in which records an object with wanted members repeats a name.

    None where the objects cannot be named: inside an ARRAY or MAP, or below a name that a path cannot hold.
    """
    paths = _object_paths("$", names, types)
    if paths is None:
        return None
    keys = ", ".join(f"json_keys(v, {quoted(path)}) AS k{i}" for i, path in enumerate(paths))
    asks = " OR ".join(f"coalesce(len(k{i}) <> list_unique(k{i}), false)" for i in range(len(paths)))
    return f"SELECT ({asks}) AS r FROM (SELECT {keys} FROM records)"


def _object_paths(at: str, names: Sequence[str], types: Sequence[DataType]) -> list[str] | None:
    """The paths of the objects whose members are wanted, `at` first; None if there are some that no path leads to."""
    paths = [at]
    for name, type_ in zip(names, types, strict=True):
        if isinstance(type_, Array | Map) and _has_row(type_):
            return None
        if isinstance(type_, Row):
            below = None if '"' in name or "\\" in name else _object_paths(f'{at}."{name}"', type_.names, type_.types)
            if below is None:
                return None
            paths += below
    return paths


def _has_row(type_: DataType) -> bool:
    while isinstance(type_, Array | Map):
        type_ = type_.element if isinstance(type_, Array) else type_.value
    return isinstance(type_, Row)
