"""The parts of a changed query that must be backfilled, and whether reading its sources again can do so.

Law: the part that is backfilled holds every operator whose state the query before does not have, every table that it
did not write, and all that feeds these. A new operator that reads from one whose state is kept must receive everything
that the kept one has emitted so far. So the backfill computes the kept operator again from the same rows, which is
correct only if its output depends on nothing but those rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import pyarrow as pa

from operators.aggregates.group_by import GroupBy
from operators.joins.regular_join import RegularJoin
from operators.joins.temporal_join import TemporalJoinOperator
from operators.kernel import Kernel
from operators.rows.normalize import NormalizeOperator
from operators.rows.set_operation import SetOperationOperator
from service.plan.meaning import Meaning, in_current_form
from service.plan.program import Operator, Output, Program

_OF_ROWS_ALONE = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
"""Aggregates whose answer does not depend on the order of the rows; for DOUBLE, only if nothing is added up."""


@dataclass(frozen=True, slots=True)
class BackfillPart:
    """The part of a changed query that is backfilled.

    `program` is that part, with the ids, levels and identities of the whole. `operators` are the names of those that
    are new, `tables` those that are written and were not before. `same_start` are the sources, by id, that must be read
    from where the query before began; `shared` names the operators for whose sake. `refusals` say why reading again
    would not do; empty where it does.
    """

    program: Program
    operators: tuple[str, ...]
    tables: tuple[str, ...]
    same_start: frozenset[int]
    shared: tuple[str, ...]
    refusals: tuple[str, ...]

    @property
    def anything(self) -> bool:
        """Whether there is something to backfill."""
        return bool(self.operators or self.tables)


def backfill_part(program: Program, known: Meaning) -> BackfillPart:
    """Return what has to be backfilled where `program` goes on after a query that meant `known`."""
    kept = {each.kept_as for each in in_current_form(known, program.meaning).operators}
    written = {each.table for each in known.outputs}
    new = [o for o in program.operators if o.kernel.traces() and o.identity not in kept]
    outputs = tuple(o for o in program.outputs if o.table.name not in written)
    needed = _feeding(program, [*(o.id for o in new), *(o.edge.producer for o in outputs)])
    part = _part(program, needed, outputs)
    shared = [o for o in part.operators if o.kernel.traces() and o.identity in kept]
    below = _feeding(program, [o.id for o in shared])
    lasting = {each.kept_as for each in program.meaning.operators if any(each.lasting)}
    refusals = [*_of_sources(part), *_of_time(part.operators)]
    refusals += _of_shared(shared, [o for o in program.operators if o.id in below], lasting)
    return BackfillPart(
        program=part,
        operators=tuple(o.name for o in new),
        tables=tuple(dict.fromkeys(o.table.name for o in outputs)),
        same_start=frozenset(s.id for s in part.sources if s.id in below),
        shared=tuple(o.name for o in shared),
        refusals=tuple(refusals),
    )


def _feeding(program: Program, wanted: Iterable[int]) -> set[int]:
    """The sources and operators of `wanted`, and all their inputs."""
    inputs = {o.id: [e.producer for e in o.inputs] for o in program.operators}
    found: set[int] = set()
    waiting = list(wanted)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += inputs.get(each, [])
    return found


def _part(program: Program, needed: set[int], outputs: tuple[Output, ...]) -> Program:
    operators = tuple(o for o in program.operators if o.id in needed)
    sources = tuple(s for s in program.sources if s.id in needed)
    levels = max((o.level for o in operators), default=0)
    meaning, identities, ids = program.meaning, {o.identity for o in operators}, {o.id for o in outputs}
    text = "\n".join([meaning.query, *sorted(identities), *(o.table.name for o in outputs)])
    return replace(
        program,
        sources=sources,
        operators=operators,
        outputs=outputs,
        levels=levels,
        meaning=replace(
            meaning,
            query=sha256(text.encode()).hexdigest()[:16],
            levels=levels,
            sources=tuple(m for s, m in zip(program.sources, meaning.sources, strict=True) if s.id in needed),
            outputs=tuple(m for o, m in zip(program.outputs, meaning.outputs, strict=True) if o.id in ids),
            operators=tuple(m for m in meaning.operators if m.kept_as in identities),
        ),
    )


def _of_sources(part: Program) -> Iterator[str]:
    for table in {s.table.name: s.table for s in part.sources}.values():
        if table.connector.kind == "datagen":
            yield f"table {table.name} is generated ('datagen'): its rows cannot be read again"
        elif table.connector.bounded.mode != "unbounded":
            yield f"table {table.name} ends ('scan.bounded.mode'): windows closed by its end remain closed"


def _of_time(operators: Iterable[Operator]) -> Iterator[str]:
    for each in operators:
        if _by_processing_time(each.kernel):
            yield f"{each.name} depends on processing time, which cannot be replayed"


def _by_processing_time(kernel: Kernel) -> bool:
    if isinstance(kernel, TemporalJoinOperator):
        return kernel.right_time is None
    of_stream: Any = getattr(kernel, "time", ())
    return of_stream is None or any(getattr(k, "processing", False) for k in (kernel, getattr(kernel, "partial", None)))


def _of_shared(shared: Iterable[Operator], below: Iterable[Operator], lasting: set[str]) -> Iterator[str]:
    feeds = "is kept and feeds what is new, but would not come to the same again"
    for each in shared:
        if each.identity in lasting:
            yield f"{each.name} {feeds}: rows that its TTL has dropped would come back"
        elif not _of_rows_alone(each.kernel):
            yield f"{each.name} {feeds}: its result depends on the order of rows, on event time or on sums of DOUBLE"
    for each in below:
        if each.lookup is not None:
            yield f"{each.name} {feeds}: table {each.lookup.table.name} may have other rows now"
        elif each.kernel.reads_now:
            yield f"{each.name} {feeds}: it depends on the time"


def _of_rows_alone(kernel: Kernel) -> bool:
    """Whether the answer of an operator depends on nothing but its rows: not on their order, nor on a clock."""
    if isinstance(kernel, GroupBy):
        exact = not any(pa.types.is_floating(f.type) for f in kernel.output)
        return exact and {a.function for a in kernel.partial.aggregates} <= _OF_ROWS_ALONE
    return isinstance(kernel, RegularJoin | NormalizeOperator | SetOperationOperator)
