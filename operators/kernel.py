"""The contract of a kernel: its inputs, its state and its output."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from operators.names import column
from operators.pieces import gathered
from operators.time import Clock

if TYPE_CHECKING:
    from operators.sql import Sql
    from operators.state.operator_state import State, TraceSpec


@dataclass(frozen=True, slots=True)
class Step:
    """The answer of an operator to one batch.

    `changes` has columns c0, c1, ... and `_weight`. `late` has the columns of the input that the rows came from, by
    port, with `_weight`. `dead` holds rows that could not be computed: the columns of the input and `_reason`.
    `unmatched_retractions` counts retractions for which no state was found; `late_count` counts late rows, also those
    that a partial aggregate has already folded and that cannot be shown.
    """

    changes: pa.Table
    late: Mapping[int, pa.Table] = field(default_factory=dict)
    dead: Mapping[int, pa.Table] = field(default_factory=dict)
    unmatched_retractions: int = 0
    late_count: int = 0


def count_late(late: Mapping[int, pa.Table]) -> int:
    """Return the number of late rows of all ports, where each is shown and has the weight 1."""
    return sum(rows.num_rows for rows in late.values())


def together(steps: Iterable[Step], empty: pa.Table) -> Step:
    """Combine consecutive steps of one operator into one; `empty` is a block of its changes without rows."""
    steps = list(steps)
    if len(steps) == 1:
        return steps[0]
    return Step(
        changes=pa.concat_tables([empty, *(s.changes for s in steps)]),
        late=_by_port([s.late for s in steps]),
        dead=_by_port([s.dead for s in steps]),
        unmatched_retractions=sum(s.unmatched_retractions for s in steps),
        late_count=sum(s.late_count for s in steps),
    )


def in_steps(tables: Iterable[pa.Table]) -> Generator[Step, None, list[pa.Table]]:
    """Yield the changes `tables` in steps of a bounded size, but for the last of these: it returns what would be in it,
    to be put to what the batch answers beside."""
    held: list[pa.Table] = []
    for group in gathered(tables):
        if held:
            yield Step(changes=pa.concat_tables(held))
        held = group
    return held


def _by_port(found: list[Mapping[int, pa.Table]]) -> dict[int, pa.Table]:
    ports = sorted({port for each in found for port in each})
    return {port: pa.concat_tables([each[port] for each in found if port in each]) for port in ports}


class PerBlock(NamedTuple):
    """A stateless kernel that computes several blocks of one input at once, with the result of another kernel for each
    of them.

    The number of a row's block is one more column (`tag_of`), the last of its input and at `position` of its output.
    """

    kernel: Kernel
    position: int


def tag_of(schema: pa.Schema) -> pa.Field:
    """Return the column after those of `schema` that holds a row's block."""
    return pa.field(column(len(schema)), pa.int64())


class Kernel(Protocol):
    """An operator: an immutable, picklable specification with one function.

    The same inputs, state and clock give bit-identical answers: a batch may be replayed after a crash when part of
    its output is already committed.
    """

    @property
    def version(self) -> int:
        """1, and one more for each fix that changes its answers or its state, so that older state is refused."""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """The visible columns (c0, c1, ...) of each input port."""

    @property
    def output(self) -> pa.Schema:
        """The visible columns (c0, c1, ...) of the changes that it emits."""

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return the state tables this operator keeps, by name; empty for a stateless operator."""

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        """Fold one batch of changes (one table a port, possibly empty) into `state` and return the resulting step."""

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        """Return the answer of `advance` in one step or more, each of a bounded size where one batch may answer without
        bound; `state` is that after the batch when the last step is out."""

    @property
    def piecewise(self) -> bool:
        """Whether the rows of a batch may be given in several calls of `advance`: one input, no state, and what is
        answered to two blocks serves as well as what is answered to both in one."""

    def needed(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """Return those of `rows` on which the answer to a batch may depend, in their order; they are some of the
        batch's rows of an operator with one input, which waits for the others."""

    def output_watermark(self, watermark: int) -> int:
        """Return the watermark of the output when that of the inputs is `watermark` (both in milliseconds)."""

    @property
    def reads_now(self) -> bool:
        """Whether an expression of this operator reads the processing time, `$now`."""

    def per_block(self) -> PerBlock | None:
        """Return the kernel for several blocks at once; None if there is none."""

    def fingerprint(self) -> str:
        """Return a text that changes when state written by this operator can no longer be read by it."""
