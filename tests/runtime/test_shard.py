"""A shard of a level: what it computes, keeps and tells, and which state it refuses."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from operators.aggregates.group_by import GroupBy
from operators.columns import weighted
from operators.kernel import Kernel
from operators.sql import Sql
from operators.time import MIN_TIME
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.runtime.envelope import Envelope, Kind, pack, unpack
from service.runtime.layout import Layout
from service.runtime.shard import Shard
from service.runtime.shard_operators import ShardOperators, StateMismatch
from service.runtime.topology import Topology
from tests.plan.build import OUT, job, project, scan, sink, table, total

SQL = Sql()
HOUR = 3_600_000


def sums(ttl: int = 0) -> Program:
    orders = scan(table("orders", "user s", "amount n"))
    return compile_job(job(sink(project(total(orders, ("user",), "amount", ttl), a="user", b="total"), OUT)))


def opened(
    program: Program, manifest: bytes | None = None, blocks: Mapping[str, pa.Buffer] | None = None
) -> ShardOperators:
    return ShardOperators(Topology(program), 1, 0, Layout(1), SQL, manifest, (blocks or {}).__getitem__)


class Kept:
    """A shard that lives on."""

    def __init__(self, program: Program) -> None:
        self._topology = Topology(program)
        self._operators = opened(program)
        self._clocks: dict[str, Any] | None = None
        self.manifest = b""

    def advance(self, envelopes: list[Envelope]) -> list[Envelope]:
        """Run one batch, and seal it."""
        shard = Shard(self._topology, 1, 0, Layout(1), self._clocks)
        answer = list(shard.advance(envelopes, lambda: self._operators))
        self._clocks = shard.save()
        saved = self._operators.seal()
        self.manifest = saved.manifest
        blocks = self.blocks = {**getattr(self, "blocks", {}), **saved.added}
        self._operators.keep_with(blocks.__getitem__, None)
        return answer


def sent(program: Program, user: str, amount: int, now: int) -> list[Envelope]:
    """One partial sum, as a task of level 0 sends it."""
    schema = weighted(program.operators[0].kernel.output)
    rows = pa.table([[user], [1], [amount], [1]], schema=schema)
    return [Envelope(0, 1, Kind.ROWS, 0, "s0000/orders/00000", 1, now, MIN_TIME, False, pack(rows))]


def answers(envelopes: list[Envelope]) -> list[tuple[str, int, int]]:
    rows = [unpack(e.payload).to_pylist() for e in envelopes if e.kind == Kind.OUTPUT]
    return [tuple(row.values()) for each in rows for row in each]


def of_another_version(program: Program, kernel: Kernel) -> Program:
    """The same query, of which an operator is computed in another way."""
    name = next(o.name for o in program.operators if o.kernel.traces())
    changed = tuple(replace(o, kernel=kernel) if o.name == name else o for o in program.operators)
    return replace(program, operators=changed)


def test_rows_that_were_computed_are_let_go_before_the_answer_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    program, came = sums(), []
    advance = GroupBy.advance

    def noted(self, state, inputs, clock, sql):
        came.append(weakref.ref(inputs[0]))
        return advance(self, state, inputs, clock, sql)

    monkeypatch.setattr(GroupBy, "advance", noted)
    operators = opened(program)
    envelopes = Shard(Topology(program), 1, 0, Layout(1), None).advance(sent(program, "ann", 5, 0), lambda: operators)
    assert next(e for e in envelopes if e.kind == Kind.OUTPUT)
    assert [rows() for rows in came] == [None]


def test_state_that_another_query_wrote_is_refused() -> None:
    shard = Kept(sums())
    shard.advance(sent(sums(), "ann", 5, now=1))
    with pytest.raises(StateMismatch, match="the state of another query"):
        opened(sums(ttl=HOUR), shard.manifest)


def test_state_that_another_version_of_an_operator_wrote_is_refused() -> None:
    program = sums()
    (kernel,) = (o.kernel for o in program.operators if o.kernel.traces())
    shard = Kept(program)
    shard.advance(sent(program, "ann", 5, now=1))
    manifest = shard.manifest
    opened(program, manifest)
    with pytest.raises(StateMismatch, match="the state of group_by_1 was written by another version"):
        opened(of_another_version(program, replace(kernel, ttl=1)), manifest)  # type: ignore[type-var]


def test_a_clock_that_is_set_back_forgets_nothing_that_was_just_written() -> None:
    program = sums(ttl=HOUR)
    shard = Kept(program)
    shard.advance(sent(program, "bob", 1, now=10 * HOUR))
    shard.advance(sent(program, "ann", 5, now=8 * HOUR))
    assert answers(shard.advance(sent(program, "ann", 2, now=8 * HOUR + 1))) == [("ann", 5, -1), ("ann", 7, 1)]
