"""Which part of Tailrace may know which: cli -> commands -> run -> spark, commands -> local, and what stands below."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A part is the longest of these names that a module's name starts with; it may import from itself and from what stands
# beside it. What is not listed here stands above all of them.
MAY_IMPORT: dict[str, set[str]] = {
    "operators": {"operators.state.mapped"},
    "operators.state.mapped": set(),
    "service.host.machine": set(),
    "service.host.checkpoint_lock": set(),
    "service.host.clock": set(),
    "service.host.clock_watch": {"service.host.clock"},
    "service.host.guard": set(),
    "service.durations": set(),
    "service.record_packing": set(),
    "service.spark.supervision.batch_sizing": set(),
    "service.exit_codes": set(),
    "service.archives": {"service.host.machine"},
    "service.host.scratch": {"service.host.machine"},
    "service.plan": {"operators"},
    "service.schema_registry": set(),
    "service.databases.address": set(),
    "service.databases.errors": set(),
    "service.databases": {"operators", "service.plan", "service.databases.address", "service.databases.errors"},
    "service.formats.avro.schema": set(),
    "service.formats.protobuf.schemas": {"service.plan"},
    "service.formats": {
        "operators",
        "service.durations",
        "service.formats.avro.schema",
        "service.formats.protobuf.schemas",
        "service.plan",
        "service.record_packing",
        "service.schema_registry",
    },
    "service.runtime": {
        "operators",
        "operators.state.mapped",
        "service.plan",
        "service.formats",
        "service.schema_registry",
    },
    "service.checkpoint": {"operators.state.mapped"},
    "service.inspection": {"operators", "service.checkpoint", "service.plan", "service.runtime"},
    "service.sql": {
        "service.plan",
        "service.durations",
        "service.databases.address",
        "service.formats.avro.schema",
        "service.formats.protobuf.schemas",
    },
    "service.kafka": {
        "service.host.clock_watch",
        "service.host.machine",
        "service.host.guard",
        "service.archives",
        "service.durations",
        "service.record_packing",
    },
    "service.settings": {"service.durations"},
    "service.observability.health": set(),
    "service.observability.http_server": {"service.observability.health"},
    "service.observability.metrics": {"service.formats", "service.plan", "service.runtime"},
    "service.observability.progress": {"service.plan"},
    "service.observability.redaction": {"service.databases.address", "service.kafka", "service.plan"},
    "service.observability.page": {
        "service.observability.health",
        "service.observability.http_server",
        "service.observability.metrics",
        "service.plan",
        "service.runtime",
        "service.observability.progress",
        "service.observability.redaction",
        "service.settings",
    },
    "service.observability.observer": {
        "service.observability.health",
        "service.observability.http_server",
        "service.observability.metrics",
        "service.observability.page",
        "service.runtime",
        "service.observability.progress",
        "service.observability.redaction",
    },
    "service.deployment.bounds": {"service.formats", "service.kafka", "service.plan", "service.runtime"},
    "service.deployment.kafka_identity": {"service.deployment.bounds", "service.kafka"},
    "service.deployment.clusters": {"service.kafka", "service.plan", "service.settings"},
    "service.deployment.matched_topics": {
        "service.deployment.bounds",
        "service.deployment.clusters",
        "service.kafka",
        "service.plan",
        "service.settings",
    },
    "service.deployment.table_options": {
        "service.deployment.clusters",
        "service.formats",
        "service.kafka",
        "service.plan",
        "service.settings",
    },
    "service.deployment.writers": {"service.deployment.bounds", "service.deployment.clusters", "service.kafka"},
    "service.deployment.schemas": {
        "service.formats",
        "service.formats.avro.schema",
        "service.formats.protobuf.schemas",
        "service.kafka",
        "service.plan",
        "service.schema_registry",
    },
    "service.deployment.start_clock": {
        "service.checkpoint",
        "service.deployment.deployment",
        "service.host.clock",
        "service.kafka",
    },
    "service.deployment.awaited_tables": {
        "service.checkpoint",
        "service.deployment.bounds",
        "service.deployment.deployment",
        "service.plan",
        "service.runtime",
    },
    "service.deployment.capacity": {"service.host.machine", "service.settings"},
    "service.deployment.deployment": {
        "service.deployment.capacity",
        "service.deployment.clusters",
        "service.deployment.kafka_identity",
        "service.deployment.writers",
        "service.formats",
        "service.kafka",
        "service.plan",
        "service.settings",
    },
    "service.deployment.topics": {
        "service.deployment.clusters",
        "service.deployment.deployment",
        "service.kafka",
    },
    "service.deployment.planning": {
        "service.databases",
        "service.deployment.capacity",
        "service.deployment.clusters",
        "service.deployment.deployment",
        "service.deployment.kafka_identity",
        "service.deployment.matched_topics",
        "service.deployment.schemas",
        "service.deployment.topics",
        "service.deployment.writers",
        "service.formats",
        "service.kafka",
        "service.plan",
        "service.record_packing",
        "service.settings",
    },
    "service.deployment.group_offsets": {
        "service.deployment.deployment",
        "service.kafka",
        "service.observability.progress",
    },
    "service.deployment.end_offsets": {
        "service.deployment.deployment",
        "service.kafka",
        "service.observability.progress",
    },
    "service.deployment.replanning": {
        "service.checkpoint",
        "service.deployment.bounds",
        "service.deployment.deployment",
        "service.kafka",
        "service.plan",
        "service.runtime",
    },
    "service.deployment.record_limits": {
        "service.deployment.bounds",
        "service.deployment.deployment",
        "service.deployment.writers",
        "service.formats",
        "service.kafka",
        "service.record_packing",
    },
    "service.deployment.rolling_forward": {
        "service.checkpoint",
        "service.deployment.bounds",
        "service.deployment.deployment",
        "service.deployment.replanning",
        "service.kafka",
        "service.runtime",
    },
    "service.deployment.upgrading": {"service.checkpoint", "service.plan", "service.runtime"},
    "service.deployment.backfill": {
        "service.checkpoint",
        "service.deployment.deployment",
        "service.kafka",
        "service.plan",
    },
    "service.deployment.taking_over": {
        "service.checkpoint",
        "service.deployment.backfill",
        "service.deployment.upgrading",
        "service.plan",
        "service.runtime",
    },
    "service.local": {"operators", "service.databases", "service.plan", "service.runtime", "service.formats"},
    "service.spark": {
        "service.checkpoint",
        "service.databases",
        "service.databases.errors",
        "operators",
        "operators.state.mapped",
        "service.archives",
        "service.deployment.capacity",
        "service.deployment.deployment",
        "service.deployment.awaited_tables",
        "service.deployment.bounds",
        "service.deployment.clusters",
        "service.deployment.end_offsets",
        "service.deployment.kafka_identity",
        "service.deployment.matched_topics",
        "service.deployment.record_limits",
        "service.deployment.replanning",
        "service.deployment.rolling_forward",
        "service.deployment.start_clock",
        "service.deployment.upgrading",
        "service.exit_codes",
        "service.formats",
        "service.host.checkpoint_lock",
        "service.host.clock",
        "service.host.guard",
        "service.deployment.group_offsets",
        "service.kafka",
        "service.host.machine",
        "service.observability.metrics",
        "service.observability.observer",
        "service.spark.supervision.batch_sizing",
        "service.plan",
        "service.runtime",
        "service.observability.progress",
        "service.settings",
        "service.deployment.writers",
        "service.schema_registry",
    },
}

# The rooms of a package, the lowest first: a room may import those before it. Files beside the rooms are not in any.
ROOMS: dict[str, tuple[str, ...]] = {
    "operators": ("state", "aggregates", "windows", "over", "joins", "ranking", "rows"),
    "service.sql": ("parse", "options", "expressions", "functions", "compiler", "tables", "resolve"),
    "service.plan": ("nodes", "passes", "validate", "lowering"),
    "service.formats": ("json", "csv", "avro", "changes", "protobuf"),
    "service.kafka": ("local_broker", "writer"),
    "service.spark": ("internals", "query", "driver", "supervision"),
    "service.observability": ("metrics", "page"),
}

RECURSIVE = ("service.sql.resolve.", "service.plan.nodes.")
"""The only parts whose modules may import each other in a circle: a query holds queries, and a plan holds plans (its
nodes name the union of all nodes as the type of their inputs)."""

# Who alone may import a package that is not ours.
ONLY_IN = {
    "pyspark": "service.spark",
    "py4j": "service.spark",
    "sqlglot": "service.sql",
    "sqlalchemy": "service.databases",
}
OPERATORS_MAY_USE = {"duckdb", "pyarrow", "numpy", *sys.stdlib_module_names}


def modules() -> dict[str, Path]:
    paths = [path for package in ("operators", "service") for path in (ROOT / package).rglob("*.py")]
    return {_name(path): path for path in sorted(paths)}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(source: str, package: list[str]) -> Iterator[str]:
    """Every module that a module in `package` imports, at its top or inside a function, relative imports included."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = ".".join([*package[: len(package) - level + 1], *filter(None, [module])]) if level else module
                for alias in names:
                    whole = f"{base}.{alias.name}"
                    yield whole if whole in MODULES else str(base)


@cache
def imports_of(name: str) -> list[str]:
    """Every module that the module of that name imports. Read when a test asks: all processes that run tests load this
    file, one runs it."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    return sorted(set(imported(path.read_text(), package)))


def part(name: str) -> str | None:
    listed = [known for known in MAY_IMPORT if name == known or name.startswith(known + ".")]
    return max(listed, key=len, default=None)


def _package(name: str) -> str:
    return name.partition(".")[0]


MODULES = modules()


def test_the_parts_have_an_order():
    TopologicalSorter(MAY_IMPORT).prepare()


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_part_imports_only_the_parts_below_it(layer: str):
    allowed = MAY_IMPORT[layer] | {layer}
    wrong = [
        f"{name} imports {target}"
        for name in MODULES
        if part(name) == layer
        for target in imports_of(name)
        if _package(target) in ("operators", "service") and target != "service" and part(target) not in allowed
    ]
    assert wrong == []


def room_of(name: str, package: str) -> str | None:
    """The room of `package` that a module is in, if it is in one."""
    if not name.startswith(f"{package}."):
        return None
    room = name.removeprefix(f"{package}.").split(".")[0]
    return room if (ROOT.joinpath(*package.split(".")) / room).is_dir() else None


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(package: str):
    order = ROOMS[package]
    wrong = set()
    for name in MODULES:
        if (room := room_of(name, package)) is None:
            continue
        for target in imports_of(name):
            other = room_of(target, package)
            if other is not None and order.index(other) > order.index(room):
                wrong.add((name, target))
    assert wrong == set()


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_has_its_place(package: str):
    rooms = {room for name in MODULES if (room := room_of(name, package)) is not None}
    assert rooms == set(ROOMS[package])


def test_operators_reach_state_through_its_tables():
    insides = ("block", "compaction", "contents", "lookup", "trace", "upkeep")
    wrong = [
        f"{name} imports {target}"
        for name in MODULES
        if part(name) == "operators" and room_of(name, "operators") != "state"
        for target in imports_of(name)
        if target in [f"operators.state.{inside}" for inside in insides]
    ]
    assert wrong == []


def test_modules_import_each_other_in_no_circle_but_those_of_queries_and_plans():
    graph = {
        name: {t for t in imports_of(name) if t in MODULES and t != name and not t.startswith(RECURSIVE)}
        for name in MODULES
    }
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(("package", "home"), ONLY_IN.items())
def test_a_package_stays_behind_the_part_that_wraps_it(package: str, home: str):
    wrong = [
        f"{name} imports {target}"
        for name in MODULES
        if not f"{name}.".startswith(f"{home}.")
        for target in imports_of(name)
        if _package(target) == package
    ]
    assert wrong == []


def test_operators_need_nothing_but_arrow_numpy_and_duckdb():
    wrong = [
        f"{name} imports {target}"
        for name in MODULES
        if part(name) == "operators"
        for target in imports_of(name)
        if _package(target) not in OPERATORS_MAY_USE | {"operators"}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("start", "users"),
    [("service.run", ("service.cli", "service.commands", "service.demo")), ("service.cli", ("service.__main__",))],
)
def test_only_the_command_line_starts_a_run(start: str, users: tuple[str, ...]):
    others = [name for name in MODULES if not f"{name}.".startswith(tuple(f"{user}." for user in (start, *users)))]
    assert [name for name in others if any(f"{target}.".startswith(f"{start}.") for target in imports_of(name))] == []


def test_the_walk_sees_imports_of_every_form():
    source = "import a.b\nfrom . import kernel\nfrom .sql import Sql\ndef f():\n    from operators import kernel as k\n"
    assert set(imported(source, ["operators"])) == {"a.b", "operators.kernel", "operators.sql"}
