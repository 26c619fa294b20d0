"""Records with a key that is written with escapes, where patterns would not find it.

`columns.key_pattern` knows two spellings of a name: with all its letters as they are, or with all beyond ASCII as
escapes. JSON allows any mixture of them, and to escape a slash or a plain letter too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.json.buffers import Flags, characters
from service.formats.json.malformed import contains
from service.plan.types import Array, DataType, Map, Row

_LETTERS = r'(?:[^"\\]|\\.)*'
"""What may stand in a string of JSON."""


class EscapedKeys:
    """Picklable: tells which records may have one of some names as a key that its pattern does not find."""

    def __init__(self, names: Iterable[str]) -> None:
        text = "".join(names)
        # A letter of ASCII is written as an escape by hand alone, but for control characters, which must be.
        control = any(letter < " " for letter in text)
        self._signs = [b"\\u00"]
        escapes = [r"\\u00[0-7]" if control else r"\\u00[2-7]"]
        if "/" in text:
            self._signs.append(b"\\/")
            escapes.append(r"\\/")
        if not text.isascii():
            self._signs.append(b"\\u")
            escapes += [rf"[^\x00-\x7F]{_LETTERS}\\u", rf"\\u{_LETTERS}[^\x00-\x7F]"]
        self._pattern = rf'"[^"]*(?:{"|".join(escapes)}){_LETTERS}"\s*:'

    def found(self, block: pa.Array) -> Flags:
        """Return the records of `block` that may have such a key."""
        # One byte is found several times as fast as four, and far faster than by comparing an array.
        if contains(block, b"\\"):
            text = characters(block)
            if any(sign in text for sign in self._signs):
                flags: Flags = pc.match_substring_regex(block, self._pattern).to_numpy(zero_copy_only=False)
                return flags
        return np.zeros(len(block), dtype=bool)


def every_name(names: Sequence[str], types: Sequence[DataType]) -> Iterator[str]:
    """Yield the names at every depth, once for each object in which they are wanted."""
    yield from names
    for type_ in types:
        inner = type_
        while isinstance(inner, Array | Map):
            inner = inner.element if isinstance(inner, Array) else inner.value
        if isinstance(inner, Row):
            yield from every_name(inner.names, inner.types)
