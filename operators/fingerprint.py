"""The fingerprint of an operator: a text that changes when it could no longer read the state it has written."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from operators.hashing import bucket_hash

FORMAT = 4
"""The version of how blocks, manifests and accumulators are laid out."""


@lru_cache(maxsize=1)
def _canary() -> str:
    """What the hash function answers to a few known values, so that a changed function is noticed."""
    table = pa.table(
        {
            "c0": pa.array([0, 1, -1, None], pa.int64()),
            "c1": pa.array(["", "tail", "race and more", None], pa.string()),
            "c2": pa.array([0.0, -0.0, float("nan"), None], pa.float64()),
        }
    )
    return hashlib.sha256(np.ascontiguousarray(bucket_hash(table, (0, 1, 2))).tobytes()).hexdigest()[:16]


_LIVES = "ttl"
"""The attribute that says how long rows live. State is the same whichever it is, as long as there is one: then each row
notes when it was written."""


def _canonical(value: object) -> str:
    if isinstance(value, pa.Schema):
        return "(" + ", ".join(f"{f.name} {f.type}" for f in value) + ")"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{f.name}={_part(f.name, getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_canonical, value)) + "]"
    return repr(value)


def _part(name: str, value: object) -> str:
    if name != _LIVES:
        return _canonical(value)
    return _canonical(tuple(bool(each) for each in value) if isinstance(value, tuple) else bool(value))


def fingerprint(spec: object) -> str:
    """Return the fingerprint of the operator `spec`, a dataclass of plain values and Arrow schemas."""
    text = f"{FORMAT} {_canary()} {_canonical(spec)}"
    return hashlib.sha256(text.encode()).hexdigest()
