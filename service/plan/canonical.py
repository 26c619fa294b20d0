"""A plan as text that says what is computed and nothing else: two plans with one text are one plan.

Names of columns, places in the file and the way an expression was spelt are left out, so a reformatted or commented
query has the text it had before. Topics and formats are part of it; broker addresses, passwords and starting offsets
are not.
"""

from __future__ import annotations

from dataclasses import fields as parts_of
from dataclasses import is_dataclass
from enum import Enum
from hashlib import sha256

from service.plan.expressions import Column, Expression, Literal
from service.plan.nodes import Field, Job, Node, Place, Sink
from service.plan.table import Connector, Table

_SILENT = {"place", "half_windowed", "waits", "faster"}
"""Attributes that do not change what a node or an expression computes from its rows."""


Memo = dict[int, tuple[object, str]]
"""The texts of nodes that were visited before, by id; the node is kept with it, so that its id stays its own."""


def canonical(value: object, known: Memo | None = None) -> str:
    """Return the text of a node, an expression, a table or any part of them; `known` is used and added to."""
    return _text(value, {} if known is None else known)


def fingerprint(job: Job) -> str:
    """Return a short text that changes when the job's query does."""
    memo: Memo = {}
    parts = [_text(s, memo) for s in job.sinks]
    return sha256("\n".join([*parts, job.zone]).encode()).hexdigest()[:16]


def _text(value: object, memo: Memo) -> str:
    match value:
        case Column(index, type_):
            return f"${index}:{_text(type_, memo)}"
        case Literal(duckdb, type_):
            return f"'{duckdb}':{_text(type_, memo)}"
        case Field(_, type_, nullable, time):
            return f"{_text(type_, memo)}{'' if nullable else '!'}{time.value}"
        case Table():
            return _table(value, memo)
        case Connector():
            return _connector(value)
        case Place():
            return ""
        case Enum():
            return str(value.value)
        case tuple() | list():
            return "[" + ",".join(_text(v, memo) for v in value) + "]"
        case frozenset():
            return "{" + ",".join(sorted(_text(v, memo) for v in value)) + "}"
        case dict():
            return "{" + ",".join(f"{k}:{_text(v, memo)}" for k, v in sorted(value.items())) + "}"
    if is_dataclass(value) and not isinstance(value, type):
        if id(value) in memo:
            return memo[id(value)][1]
        inner = ",".join(_text(getattr(value, p.name), memo) for p in parts_of(value) if p.name not in _SILENT)
        text = f"{type(value).__name__}({inner})"
        if isinstance(value, Node | Sink):
            # A digest keeps the text of a DAG from doubling at every shared node.
            text = f"{type(value).__name__}#{sha256(text.encode()).hexdigest()}"
            memo[id(value)] = (value, text)
        return text
    return repr(value)


def _table(table: Table, memo: Memo) -> str:
    columns = ",".join(
        f"{c.name} {_text(c.type, memo)} {c.kind.value} {c.nullable} {c.metadata} {_expression(c.expression, memo)}"
        for c in table.columns
    )
    return (
        f"{table.name}({columns}; key {table.key}; rowtime {table.rowtime}"
        f" {_expression(table.watermark, memo)}; {_connector(table.connector)}{'; upserts' if table.upserts else ''})"
    )


def _expression(expression: Expression | None, memo: Memo) -> str:
    return "" if expression is None else _text(expression, memo)


def _connector(c: Connector) -> str:
    formats = [(f.kind, sorted(f.options.items())) for f in (c.key_format, c.value_format) if f]
    if c.lookup is not None:
        return repr((c.kind, c.lookup.table))
    return repr((c.kind, c.topics, c.topic_pattern, formats, c.key_fields, c.key_fields_prefix, c.value_fields_include))
