"""A job: its sinks, with the plans above them, which run as one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.plan.nodes.relation import NOWHERE, Place
from service.plan.table import Table

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """An INSERT INTO: the input's columns, already cast, in the order of the table's writable columns."""

    input: Node
    table: Table
    columns: tuple[int, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Job:
    """One Spark query: the INSERTs of a statement set, or a single INSERT. Nodes shared by several sinks are the same
    object. `settings` are the SET keys in force, in Flink's names."""

    name: str
    sinks: tuple[Sink, ...]
    settings: tuple[tuple[str, str], ...] = ()
    zone: str = "UTC"
