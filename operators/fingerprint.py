"""The fingerprint of an operator: a text that changes when it could no longer read the state it has written.

Law: it describes what is kept and how (the kernel, its attributes, its tables), and never the text by which DuckDB
computes it. An attribute with its default value is left out, so a kernel may get more of them; a default is never
changed. The version of the kernel stands beside it in the identity of the operator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from operators.hashing import bucket_hash

if TYPE_CHECKING:
    from operators.kernel import Kernel

FORMAT = 4
"""The version of how blocks, manifests and accumulators are laid out."""

DUCKDB_TEXT: Mapping[str, bool] = {"duckdb": True}
"""Marks an attribute that holds DuckDB text, as `field(metadata=DUCKDB_TEXT)`: the plan describes what it computes."""


@lru_cache(maxsize=1)
def _canary() -> str:
    """The hashes of a few known values, so that a changed hash function is noticed."""
    table = pa.table(
        {
            "c0": pa.array([0, 1, -1, None], pa.int64()),
            "c1": pa.array(["", "tail", "race and more", None], pa.string()),
            "c2": pa.array([0.0, -0.0, float("nan"), None], pa.float64()),
        }
    )
    return hashlib.sha256(np.ascontiguousarray(bucket_hash(table, (0, 1, 2))).tobytes()).hexdigest()[:16]


_LIVES = "ttl"
"""The attribute with the time to live. Its length does not change the state, as long as there is one: then each row
stores when it was written."""


def is_default(part: Field[Any], value: object) -> bool:
    """Return whether an attribute has its default value."""
    if part.default_factory is not MISSING:
        return bool(value == part.default_factory())
    return part.default is not MISSING and bool(value == part.default)


_LATER: Set[tuple[str, str]] = frozenset(
    {
        ("SettleOperator", "processing"),
        ("WindowPartial", "numbered"),
        ("GroupedWindowPartial", "numbered"),
        ("GroupPartial", "numbered"),
        ("RegularJoin", "doubts"),
        ("TemporalJoinOperator", "doubts"),
        ("OverOperator", "ties"),
        ("SessionAggregate", "late_shown"),
    }
)
"""Attributes, with their classes, that are newer than format 6 of state: their defaults mean what was before."""


class _Text:
    """The text of a whole specification, as it was written for format 6 of state."""

    def of(self, value: object) -> str:
        if isinstance(value, pa.Schema):
            return "(" + ", ".join(f"{f.name} {f.type}" for f in value) + ")"
        if is_dataclass(value) and not isinstance(value, type):
            inner = ", ".join(f"{name}={self._part(name, part)}" for name, part in self.attributes(value))
            return f"{type(value).__name__}({inner})"
        if isinstance(value, tuple):
            return "[" + ", ".join(map(self.of, value)) + "]"
        return repr(value)

    def attributes(self, value: Any) -> Iterator[tuple[str, object]]:
        for part in fields(value):
            attribute = getattr(value, part.name)
            if (type(value).__name__, part.name) not in _LATER or not is_default(part, attribute):
                yield part.name, attribute

    def _part(self, name: str, value: object) -> str:
        if name != _LIVES:
            return self.of(value)
        return self.of(tuple(bool(each) for each in value) if isinstance(value, tuple) else bool(value))


class _Meaning(_Text):
    """The text of the part of a specification that determines its state."""

    def attributes(self, value: Any) -> Iterator[tuple[str, object]]:
        for part in fields(value):
            attribute = getattr(value, part.name)
            if "duckdb" not in part.metadata and not is_default(part, attribute):
                yield part.name, attribute


def fingerprint(kernel: Kernel) -> str:
    """Return the fingerprint of the operator `kernel`, a dataclass of plain values and Arrow schemas."""
    tables = ", ".join(f"{name} {_Meaning().of(spec)}" for name, spec in sorted(kernel.traces().items()))
    return _digest(f"{FORMAT} {_canary()} {_Meaning().of(kernel)} {tables}")


def fingerprint_of_format_6(kernel: Kernel) -> str:
    """Return the fingerprint that the operator had in state of format 6, with all its DuckDB text."""
    return _digest(f"{FORMAT} {_canary()} {_Text().of(kernel)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
