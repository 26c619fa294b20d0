"""The defaults of most operators: no state, no delay of the watermark, a fingerprint of the whole specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.fingerprint import fingerprint

if TYPE_CHECKING:
    from operators.kernel import Kernel, PerBlock, Step
    from operators.sql import Sql
    from operators.state.operator_state import State, TraceSpec
    from operators.time import Clock


class KernelDefaults:
    """The defaults of `operators.kernel.Kernel`; a kernel is a frozen dataclass that extends this."""

    __slots__ = ()

    @property
    def version(self) -> int:
        """The first version."""
        return 1

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return no table: a kernel keeps no state by default."""
        return {}

    def steps(self: Kernel, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        """Yield the answer in one step."""
        step = self.advance(state, inputs, clock, sql)
        del inputs  # what takes the step need not hold the rows that it came from
        yield step

    @property
    def piecewise(self) -> bool:
        """Whether blocks may come one by one: a batch is passed as a whole."""
        return False

    def needed(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """Return all rows."""
        return rows

    def output_watermark(self, watermark: int) -> int:
        """Return the watermark unchanged."""
        return watermark

    @property
    def reads_now(self) -> bool:
        """No expression asks for the processing time."""
        return False

    def per_block(self) -> PerBlock | None:
        """Return one block at a time."""
        return None

    def fingerprint(self: Kernel) -> str:
        """Return a digest of the specification, the tables, the format's version and a canary of the hash function."""
        return fingerprint(self)
