"""The ids of sources and of state under a changed query: a source that the query before has read keeps its id, and
state is kept under the name that it has.

Law: the state of a checkpoint knows a source by its id, and the log of batches knows it by its position among those of
the query. So ids stay with their sources, in the order in which they were given; a source that is new gets one that no
source ever had, behind all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from service.plan.meaning import Meaning, SourceMeaning, in_current_form
from service.plan.program import Edge, Program


class Ids(NamedTuple):
    """New ids of the sources and outputs of a program, `of` those that they have; sources have had ids below `used`.
    `kept_as` is what state is kept under that has another name than the identity of its operator."""

    of: Mapping[int, int]
    used: int
    kept_as: Mapping[str, str]


def ids_after(program: Program, known: Meaning) -> Ids:
    """Return the ids of `program` where it goes on after a query that meant `known`."""
    there: defaultdict[SourceMeaning, list[int]] = defaultdict(list)
    for each in known.sources:
        there[_nameless(each)].append(each.id)
    found: dict[int, int] = {}
    used = known.used_ids
    for each in program.meaning.sources:
        left = there[_nameless(each)]
        if left:
            found[each.id] = left.pop(0)
        else:
            found[each.id] = used
            used += 1
    kept_as = {
        o.identity: o.kept_as for o in in_current_form(known, program.meaning).operators if o.kept_as != o.identity
    }
    return Ids(found | {output.id: used + place for place, output in enumerate(program.outputs)}, used, kept_as)


def renumbered(program: Program, ids: Ids) -> Program:
    """Return `program` with these ids and names of state, and its sources in their order."""
    behind = ids.used + len(program.outputs)
    number = {**ids.of, **{o.id: behind + place for place, o in enumerate(program.operators)}}

    def moved(edge: Edge) -> Edge:
        return replace(edge, producer=number[edge.producer])

    sources = [replace(s, id=number[s.id], after=tuple(sorted(number[a] for a in s.after))) for s in program.sources]
    meanings = [replace(m, id=number[m.id]) for m in program.meaning.sources]
    return replace(
        program,
        sources=tuple(sorted(sources, key=lambda source: source.id)),
        outputs=tuple(replace(o, id=number[o.id], edge=moved(o.edge)) for o in program.outputs),
        operators=tuple(
            replace(
                o,
                id=number[o.id],
                inputs=tuple(map(moved, o.inputs)),
                identity=ids.kept_as.get(o.identity, o.identity),
            )
            for o in program.operators
        ),
        meaning=replace(
            program.meaning,
            sources=tuple(sorted(meanings, key=lambda meaning: meaning.id)),
            used_ids=ids.used,
            operators=tuple(
                replace(m, kept_as=ids.kept_as.get(m.identity, m.kept_as)) for m in program.meaning.operators
            ),
        ),
    )


def going_on(program: Program, known: Meaning) -> Program:
    """Return `program` with the ids and names that its sources and its state have in a checkpoint of a query that meant
    `known`."""
    return renumbered(program, ids_after(program, known))


def _nameless(source: SourceMeaning) -> SourceMeaning:
    return replace(source, id=0)
