"""The text of a pipeline file: `${VARIABLE}` filled in, every offset still leads to the line and column as written."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from service.plan.nodes import Place

# Comments and quoted names are passed over; `$${` stands for a plain `${`.
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|`[^`]*`|/\*(?!\+).*?(?:\*/|\Z))|(?P<quote>')|(?P<escaped>\$\$\{)"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}",
    re.DOTALL,
)


class Missing(NamedTuple):
    """A variable that the environment does not hold, and where it is asked for."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """`text` is what is parsed; `cuts` leads back from its offsets to those of `written`: a piece of `text` starts at
    cuts[i][0] and comes from cuts[i][1]; if cuts[i][2] it is verbatim, else it is the value of a variable. `asked` are
    the variables that it names."""

    name: str
    written: str
    text: str
    cuts: tuple[tuple[int, int, bool], ...]
    missing: tuple[Missing, ...] = ()
    asked: tuple[str, ...] = ()

    def place(self, offset: int) -> Place:
        """Return the line and column, both from 1, of the character at `offset` of `text`."""
        at = bisect_right(self.cuts, offset, key=lambda cut: cut[0]) - 1
        start, original, verbatim = self.cuts[at]
        return self.written_place(original + (offset - start if verbatim else 0))

    def written_place(self, offset: int) -> Place:
        """Return the line and column of the character at `offset` of the file as written."""
        line = self.written.count("\n", 0, offset) + 1
        return Place(line, offset - (self.written.rfind("\n", 0, offset) + 1) + 1)


def decoded(raw: bytes) -> tuple[str, int | None]:
    """Return the text of a file, without a byte order mark, and where its first byte stands that is no UTF-8, if there
    is one.

    Such bytes are replaced.
    """
    try:
        return raw.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        before = len(raw[: error.start].decode("utf-8-sig", errors="replace"))
        return raw.decode("utf-8-sig", errors="replace"), before


def read_source(name: str, written: str, environment: Mapping[str, str]) -> SourceText:
    """Fill in each `${NAME}` and `${NAME:-default}` of `written` from `environment`.

    Comments are left alone. Inside a string literal a quote of the value is doubled, so that a password may hold one.
    A missing variable is listed; its name stands in for it, so that nothing else is amiss.
    """
    pieces: list[str] = []
    cuts: list[tuple[int, int, bool]] = [(0, 0, True)]
    missing: list[Missing] = []
    asked: dict[str, None] = {}
    length = done = 0
    quoted = False

    def put(piece: str, original: int, verbatim: bool) -> None:
        nonlocal length
        cuts.append((length, original, verbatim))
        pieces.append(piece)
        length += len(piece)

    position = 0
    while found := _TOKEN.search(written, position):
        position = found.end()
        if found["quote"]:
            quoted = not quoted
            continue
        if found["comment"]:
            position = found.start() + 1 if quoted else position
            continue
        put(written[done : found.start()], done, True)
        if found["escaped"]:
            value = "${"
        else:
            asked[found["name"]] = None
            known = environment.get(found["name"], found["default"])
            if known is None:
                missing.append(Missing(found["name"], found.start()))
            value = found["name"] if known is None else known
        put(value.replace("'", "''") if quoted else value, found.start(), False)
        done = position
    put(written[done:], done, True)
    return SourceText(name, written, "".join(pieces), tuple(cuts), tuple(missing), tuple(asked))
