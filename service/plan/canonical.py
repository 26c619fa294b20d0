"""A plan as text that says what is computed and nothing else: two plans with one text are one plan.

Names of columns, places in the file and the way an expression was spelt are left out, so a reformatted or commented
query has the text it had before. Topics and formats are part of it; broker addresses, passwords and starting offsets
are not.

Law: a call is the name of its function, its version, its arguments, its constants and its type, and never DuckDB text.
An attribute that has its default value says nothing, so a node may get more of them; a default is never changed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import fields as parts_of
from dataclasses import is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

from operators.aggregates.functions import semantic_constants
from operators.fingerprint import is_default
from service.plan.expressions import Column, Expression, Literal
from service.plan.nodes import AggregateCall, Field, Job, Node, OverCall, Place, Sink
from service.plan.table import Connector, Table
from service.plan.versions import version_of_call

_SILENT = {"place", "places", "windowed", "half_windowed", "waits", "faster"}
"""Attributes that do not change what a node or an expression computes from its rows."""

_FEEDING = {"input", "inputs", "left", "right"}
"""Attributes that hold what a node reads."""


class MeaningText:
    """Texts of what parts of a plan mean; the text of a node is stored, so that each is written once.

    Lists are made where a generator would do: each level of a generator that C code reads is one of C's calls, of which
    Python 3.12 allows 1,500 whatever the stack."""

    _versions = True
    """Whether versions are part of the text."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}

    def of(self, value: object) -> str:
        """Return the text of a node, an expression, a table or any part of them."""
        match value:
            case Column(index, type_):
                return f"${index}:{self.of(type_)}"
            case Literal(duckdb, type_):
                return f"'{duckdb}':{self.of(type_)}"
            case Field(_, type_, nullable, time):
                return f"{self.of(type_)}{'' if nullable else '!'}{time.value}"
            case Table():
                return self._table(value)
            case Connector():
                return _connector(value)
            case Place():
                return ""
            case Enum():
                return str(value.value)
            case tuple() | list():
                return "[" + ",".join([self.of(v) for v in value]) + "]"
            case frozenset():
                return "{" + ",".join(sorted([self.of(v) for v in value])) + "}"
            case dict():
                return "{" + ",".join([f"{k}:{self.of(v)}" for k, v in sorted(value.items())]) + "}"
        if is_dataclass(value) and not isinstance(value, type):
            if id(value) in self._known:
                return self._known[id(value)][1]
            text = f"{type(value).__name__}({','.join(self.parts(value))})"
            if isinstance(value, Node | Sink):
                # A digest keeps the text of a DAG from doubling at every shared node.
                text = f"{type(value).__name__}#{sha256(text.encode()).hexdigest()}"
                self._known[id(value)] = (value, text)
            return text
        return repr(value)

    def own(self, node: Node | Sink) -> str:
        """Return the text of a node itself, without its inputs."""
        return f"{type(node).__name__}({','.join(self.parts(node, _FEEDING))})"

    def parts(self, value: Any, without: Set[str] = frozenset()) -> list[str]:
        """Return the texts of the attributes of a dataclass."""
        texts = []
        for part in parts_of(value):
            attribute = getattr(value, part.name)
            if part.name == "versions" and not self._versions:
                continue
            if part.name in _SILENT or part.name in without or "duckdb" in part.metadata or is_default(part, attribute):
                continue
            if part.name == "constants" and isinstance(value, AggregateCall | OverCall):
                attribute = semantic_constants(value.function, value.constants)
            texts.append(f"{part.name}={self.of(attribute)}")
        if isinstance(value, AggregateCall | OverCall) and self._versions and version_of_call(value) > 1:
            texts.append(f"version={version_of_call(value)}")
        return texts

    def _table(self, table: Table) -> str:
        columns = ",".join(
            [
                f"{c.name} {self.of(c.type)} {c.kind.value} {c.nullable} {c.metadata} {self._expression(c.expression)}"
                for c in table.columns
            ]
        )
        watermark, connector = self._expression(table.watermark), _connector(table.connector)
        upserts = "; upserts" if table.upserts else ""
        return f"{table.name}({columns}; key {table.key}; rowtime {table.rowtime} {watermark}; {connector}{upserts})"

    def _expression(self, expression: Expression | None) -> str:
        return "" if expression is None else self.of(expression)


class UnversionedText(MeaningText):
    """Texts of what parts of a plan mean, without the versions of functions, aggregates and kernels."""

    _versions = False


class ExactText(MeaningText):
    """Texts of how parts of a plan are computed, DuckDB text included: within a job, parts of one text are computed
    once."""

    _later: Set[tuple[str, str]] = frozenset()
    """Attributes that are left out, with their classes."""

    def parts(self, value: Any, without: Set[str] = frozenset()) -> list[str]:
        """Return the texts of the attributes of a dataclass."""
        texts = []
        for part in parts_of(value):
            later = (type(value).__name__, part.name) in self._later
            if not later and part.name not in _SILENT and part.name not in without:
                texts.append(self.of(getattr(value, part.name)))
        return texts


class TextOfFormat6(ExactText):
    """The texts that parts of a plan had in checkpoints of format 6.

    A later attribute is added to `_later`: its default means what was before.
    """

    _later = frozenset({("Call", "constants"), ("Call", "versions"), ("Over", "ties")})

    def parts(self, value: Any, without: Set[str] = frozenset()) -> list[str]:
        """Return the texts of the attributes of a dataclass, and of the aggregates that have changed since format 6."""
        texts = super().parts(value, without)
        if isinstance(value, AggregateCall | OverCall) and version_of_call(value) > 1:
            texts.append(f"version={version_of_call(value)}")
        return texts


def canonical(value: object) -> str:
    """Return the text of a node, an expression, a table or any part of them."""
    return MeaningText().of(value)


def fingerprint(job: Job, text: MeaningText) -> str:
    """Return a short text that changes when the job's query does."""
    return sha256("\n".join([*map(text.of, job.sinks), job.zone]).encode()).hexdigest()[:16]


def _connector(c: Connector) -> str:
    formats = [(f.kind, sorted(f.options.items())) for f in (c.key_format, c.value_format) if f]
    if c.lookup is not None:
        return repr((c.kind, c.lookup.table))
    return repr((c.kind, c.topics, c.topic_pattern, formats, c.key_fields, c.key_fields_prefix, c.value_fields_include))
