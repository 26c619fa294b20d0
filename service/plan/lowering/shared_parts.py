"""Common subexpressions of a projection, which are computed once.

Law: a part is computed apart only if one of the expressions computes it for every row anyway, so that no row fails that
did not. A part that occurs only in branches of a CASE stays there, and a random value stays where it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from service.plan.expressions import Call, Column, Expression, Literal

_PLACE = re.compile(r"(?<!\{)\{(\d+)\}")

_AT_TIMES = re.compile(r"\b(?:THEN|ELSE|AND|OR|TRY|COALESCE|IF|IFNULL|LAMBDA|SELECT)\b", re.IGNORECASE)
"""Template text after which a part may be computed for some rows only, or in a place where a failure is caught."""


class SharedParts(NamedTuple):
    """The texts of expressions over the columns and over s0, s1, ..., the parts that they share. Those are computed in
    `steps`, each over the columns and the parts of the steps before it, and have their numbers in this order."""

    steps: tuple[tuple[str, ...], ...]
    expressions: tuple[str, ...]


class _Part(NamedTuple):
    """An expression that is kept once, however often it stands; `arguments` are the numbers of parts before it.

    `reads` says whether it reads a column, `plain` that it costs nothing: a column, or a field of one.
    """

    template: str
    arguments: tuple[int, ...]
    deterministic: bool
    reads: bool
    plain: bool

    def places(self) -> Iterator[tuple[int, bool]]:
        """The parts that the template names, as often as it does, and whether it computes them for every row."""
        often = _AT_TIMES.search(self.template)
        ends = len(self.template) if often is None else often.start()
        for place in _PLACE.finditer(self.template) if self.arguments else ():
            yield self.arguments[int(place[1])], place.start() < ends


class _Parts:
    """All parts of some expressions; each comes after the parts that it is made of."""

    def __init__(self) -> None:
        self.all: list[_Part] = []
        self._numbers: dict[_Part, int] = {}

    def number(self, expression: Expression) -> int:
        """Return the number of the part for `expression`."""
        match expression:
            case Column(index):
                part = _Part(f"c{index}", (), True, True, True)
            case Literal(duckdb):
                part = _Part(duckdb, (), True, False, True)
            case Call(name, arguments, template=template, deterministic=own):
                numbers = tuple(map(self.number, arguments))
                below = [self.all[n] for n in numbers]
                part = _Part(
                    template if numbers else template.format(),
                    numbers,
                    own and all(each.deterministic for each in below),
                    any(each.reads for each in below),
                    name.startswith(".") and all(each.plain for each in below),
                )
        found = self._numbers.setdefault(part, len(self.all))
        if found == len(self.all):
            self.all.append(part)
        return found

    def shared(self, roots: Sequence[int]) -> frozenset[int]:
        """Return the parts to compute apart, among those that make up the parts `roots`."""
        times = Counter(roots)
        always = set(roots)
        for number in reversed(range(len(self.all))):
            for place, for_every_row in self.all[number].places():
                times[place] += 1
                if for_every_row and number in always:
                    always.add(place)
        worth = (n for n, part in enumerate(self.all) if part.deterministic and part.reads and not part.plain)
        return frozenset(n for n in worth if times[n] > 1 and n in always)


def shared_parts(expressions: Sequence[Expression]) -> SharedParts:
    """Return `expressions` as DuckDB text, with the parts that they share."""
    parts = _Parts()
    roots = [parts.number(expression) for expression in expressions]
    shared = parts.shared(roots)
    # The step in which a part can be computed: behind those of the shared parts that it is made of.
    steps: list[int] = []
    for part in parts.all:
        steps.append(max((steps[a] + (a in shared) for a in part.arguments), default=0))
    ordered = sorted(shared, key=lambda number: (steps[number], number))
    names = {number: f"s{i}" for i, number in enumerate(ordered)}
    texts: list[str] = []
    for part in parts.all:
        known = [names.get(a, texts[a]) for a in part.arguments]
        texts.append(part.template.format(*known) if known else part.template)
    made = [tuple(texts[n] for n in group) for _, group in groupby(ordered, steps.__getitem__)]
    return SharedParts(tuple(made), tuple(names.get(root, texts[root]) for root in roots))
