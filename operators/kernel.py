"""The contract of a kernel: what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from operators.time import Clock

if TYPE_CHECKING:
    from operators.sql import Sql
    from operators.state.operator_state import State, TraceSpec

WEIGHT = "_weight"
"""The hidden column (BIGINT) of every block of changes: +n inserts a row n times, -n takes it back n times.

A row of weight 0 was written again unchanged: it changes no answer, but with a time to live it keeps state alive, here
and downstream, and a sink may show it as an update to the same row.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What an operator answers to one batch.

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


class Kernel(Protocol):
    """An operator: an immutable, picklable specification with one function.

    The same inputs, state and clock give bit-identical answers: a batch may be replayed after a crash when part of
    its output is already committed.
    """

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """The visible columns (c0, c1, ...) of each input port."""

    @property
    def output(self) -> pa.Schema:
        """The visible columns (c0, c1, ...) of the changes that come out."""

    def traces(self) -> Mapping[str, TraceSpec]:
        """The state tables this operator keeps, by name; empty for a stateless operator."""

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        """Fold one batch of changes (one table a port, possibly empty) into `state` and return what follows from it."""

    def output_watermark(self, watermark: int) -> int:
        """The watermark of the output when that of the inputs is `watermark` (both in milliseconds)."""

    @property
    def reads_now(self) -> bool:
        """Whether an expression of this operator asks for the processing time, `$now`."""

    def fingerprint(self) -> str:
        """A text that changes when state written by this operator can no longer be read by it."""
