"""The description of operators in a checkpoint, for people who inspect it: names, tables, and the names of columns in
the query. It contains no value of the query."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from operators.joins.temporal_join import TemporalJoinOperator
from operators.over.over import OverOperator
from operators.state.operator_state import TableKind, TraceSpec
from operators.windows.numbered_windows import NumberedWindows
from operators.windows.session_aggregate import SessionAggregate
from operators.windows.session_rows import SessionRows
from service.plan.program import Operator, Program

OPERATORS = "operators"
"""The small file of a checkpoint that holds them."""

_SIDES = {"left": 0, "right": 1}
"""The first words of the names of tables that keep rows of one input, of an operator with two."""

_OF_VERSIONS = {"ahead", "current", "answered", "times"}
"""The tables of a temporal join with columns of its right input."""


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table of an operator. `shown` are the names of its columns for people. `key` are the columns by which rows are
    distributed to the operator, as far as the table has them, under these names."""

    spec: TraceSpec
    shown: Mapping[str, str]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptOperator:
    """An operator with state: the identity under which the state is stored, and its name in `explain` and metrics."""

    identity: str
    name: str
    level: int
    order: tuple[int, ...] | None
    tables: Mapping[str, KeptTable]

    @property
    def short(self) -> str:
        """Its kind and the first digits of its identity: the same after a change of other parts of the query."""
        return short_identity(self.identity)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "identity": self.identity,
            "name": self.name,
            "level": self.level,
            "order": None if self.order is None else list(self.order),
            "tables": {name: _to_json(table) for name, table in self.tables.items()},
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> KeptOperator:
        """Read what `to_json` wrote."""
        order = stored["order"]
        tables = {name: _table(each) for name, each in stored["tables"].items()}
        return KeptOperator(
            stored["identity"], stored["name"], stored["level"], None if order is None else tuple(order), tables
        )


def short_identity(identity: str) -> str:
    """Return the first six digits of an identity, and its number among equal ones."""
    kind, digest, *number = identity.rsplit("-", 2) if identity.count("-") > 1 else identity.split("-")
    return "-".join([kind, digest[:6], *number])


def kept_operators(program: Program) -> tuple[KeptOperator, ...]:
    """Return the operators of a program that keep state."""
    return tuple(
        KeptOperator(
            operator.identity,
            operator.name,
            operator.level,
            operator.order,
            {name: _kept(operator, name, spec) for name, spec in operator.kernel.traces().items()},
        )
        for operator in program.operators
        if operator.kernel.traces()
    )


def _kept(operator: Operator, name: str, spec: TraceSpec) -> KeptTable:
    port = next((number for side, number in _SIDES.items() if name.startswith(side)), 0)
    if isinstance(operator.kernel, TemporalJoinOperator) and name in _OF_VERSIONS:
        port = 1
    known = operator.ports[port] if port < len(operator.ports) else ()
    keys = _key_names(operator)
    shown: dict[str, str] = {}
    for column in spec.schema.names:
        names = {"c": known, "k": keys}.get(column[0], ()) if column[1:].isdigit() else ()
        place = int(column[1:]) if names else 0
        # Two columns of one name are told apart by their places.
        wanted = names[place] if place < len(names) and names[place] else column
        shown[column] = column if wanted in shown.values() else wanted
    edge = operator.inputs[port] if port < len(operator.inputs) else operator.inputs[0]
    of_key = [f"{letter}{place}" for place in edge.key or () for letter in "kc"]
    key = tuple(shown[column] for column in of_key if column in shown)
    groups = tuple(shown[column] for column in shown if column[0] == "k" and column[1:].isdigit())
    return KeptTable(spec, shown, groups or key)


def _key_names(operator: Operator) -> Sequence[str]:
    """The names of the keys k0, k1, ... of an operator's tables, as far as its first input has them."""
    kernel, known = operator.kernel, operator.ports[0] if operator.ports else ()
    match kernel:
        case TemporalJoinOperator():
            places = kernel.left_keys
        case OverOperator():
            places = kernel.partition
        case NumberedWindows() | SessionAggregate() | SessionRows() if kernel.inputs[0] == kernel.partial.input:
            places = kernel.partial.keys
        case _:
            return known
    return [known[place] for place in places] if known else ()


def _to_json(table: KeptTable) -> dict[str, Any]:
    spec = table.spec
    return {
        "schema": base64.b64encode(spec.schema.serialize().to_pybytes()).decode(),
        "kind": spec.kind.value,
        "timestamp": spec.timestamp,
        "key": None if spec.key is None else list(spec.key),
        "key_is_hash": spec.key_is_hash,
        "placing": spec.placing,
        "shown": dict(table.shown),
        "known_by": list(table.key),
    }


def _table(stored: Mapping[str, Any]) -> KeptTable:
    key = stored["key"]
    spec = TraceSpec(
        schema=pa.ipc.read_schema(pa.BufferReader(base64.b64decode(stored["schema"]))),
        kind=TableKind(stored["kind"]),
        timestamp=stored["timestamp"],
        key=None if key is None else tuple(key),
        key_is_hash=stored["key_is_hash"],
        placing=stored["placing"],
    )
    return KeptTable(spec, stored["shown"], tuple(stored["known_by"]))
