"""The common part of all tables: a name, columns, and the trace behind them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from operators.state.contents import TraceSpec
from operators.state.operator_state import State
from operators.state.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTable(ABC):
    """The table `name` of an operator's state, whose rows have the columns of `schema`.

    The rows that a table gives may have hidden columns behind these. They are the table's own: an operator hands them
    back as they are, or drops them.
    """

    name: str
    schema: pa.Schema

    @abstractmethod
    def spec(self) -> TraceSpec:
        """Return the trace behind this table."""

    def trace(self, state: State) -> Trace:
        """Return the trace of this table in `state`."""
        return state[self.name]

    def expire_upto(self, state: State, upto: int) -> None:
        """Forget the rows whose own time of expiry is `upto` or less."""
        self.trace(state).expire(upto)


class Described(Protocol):
    """Anything that has a trace."""

    @property
    def name(self) -> str:
        """The name of the trace."""

    def spec(self) -> TraceSpec:
        """Return what kind of trace it is."""


def specs_of(*tables: Described) -> dict[str, TraceSpec]:
    """Return the traces behind `tables`, by name."""
    return {table.name: table.spec() for table in tables}
