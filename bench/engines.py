"""The engines: each is a command that runs a SQL file to the end of its bounded topics, and an environment for it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.cases import Case
from bench.flink.launch import HERE as FLINK
from bench.flink.launch import java_command
from service.spark.driver.class_path import spark_home

ROOT = Path(__file__).parent.parent
CORES = os.cpu_count() or 1
"""The cores that executors share: as many as the engine `tailrace` takes with its default settings."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, the variables that are added to this process's own, and a folder whose new entries are removed
    after the run. `commits_last` says whether the engine commits its last rows before it ends."""

    command: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    litter: Path | None = None
    commits_last: bool = True

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | dict(self.variables)

    def left_out(self, read: int, rows: int) -> str:
        """What to say of a run that ended without a complaint when it had committed `read` of `rows`; mostly nothing.

        Tailrace ends so when it is asked to stop, too. One that does not commit its last rows is believed.
        """
        return f"ended after {read:,} of {rows:,} rows" if self.commits_last and read < rows else ""


def flink(sql: Path, folder: Path, changed: Mapping[str, str] | None = None) -> Launch:
    """Flink SQL as its settings file says, except for what is `changed`."""
    changes = {
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "io.tmp.dirs": str(folder / "tmp"),
        **(changed or {}),
    }
    settings = folder / "flink.properties"
    text = (FLINK / "exactly-once.properties").read_text()
    settings.write_text(text + "".join(f"{name}={value}\n" for name, value in changes.items()))
    # It ends while the offsets of its last checkpoint are on their way; asked to stop, it ends with a code of its own.
    return Launch(java_command("RunSql", str(settings), str(sql), heap="2g"), commits_last=False)


def flink_row_by_row(sql: Path, folder: Path, tasks: int | None = None) -> Launch:
    """Flink SQL without mini-batches, as it is when nothing is set; with `tasks` a step if given."""
    numbers = {} if tasks is None else {"parallelism.default": f"{tasks}", "taskmanager.numberOfTaskSlots": f"{tasks}"}
    return flink(sql, folder, {"table.exec.mini-batch.enabled": "false", **numbers})


def tailrace(sql: Path, folder: Path) -> Launch:
    """Tailrace as it is installed beside this interpreter, with default settings."""
    command = shutil.which("tailrace", path=str(Path(sys.executable).parent)) or "tailrace"
    (folder / "scratch").mkdir(exist_ok=True)
    variables = {
        "TAILRACE_CHECKPOINT": str(folder / "checkpoint"),
        "TAILRACE_SCRATCH": str(folder / "scratch"),
        "TAILRACE_HTTP__PORT": "0",
        "TAILRACE_TOPICS__CREATE": "true",
    }
    return Launch([command, "run", str(sql)], variables)


def tailrace_on_executors(number: int, sql: Path, folder: Path) -> Launch:
    """Tailrace whose tasks run in `number` executors, JVMs of their own that share `CORES`; all else is the same."""
    alone = tailrace(sql, folder)
    cores = max(1, CORES // number)
    variables = {
        "TAILRACE_SPARK__MASTER": f"local-cluster[{number},{cores},2048]",
        "TAILRACE_SPARK__EXECUTOR__INSTANCES": str(number),
        "TAILRACE_SPARK__EXECUTOR__CORES": str(cores),
        "TAILRACE_SPARK__PARTITIONS": str(CORES),
    }
    # A local cluster puts the working folders of its executors there.
    return Launch(alone.command, {**alone.variables, **variables}, litter=spark_home() / "work")


def tailrace_in_tasks(tasks: int, sql: Path, folder: Path) -> Launch:
    """Tailrace with this number of tasks a level."""
    usual = tailrace(sql, folder)
    return Launch(usual.command, {**usual.variables, "TAILRACE_SPARK__PARTITIONS": str(tasks)})


def native(sql: Path, folder: Path) -> Launch:
    """The same query written for Spark Structured Streaming; its name is that of the SQL file."""
    command = [sys.executable, "-m", "bench.native_spark", str(sql), str(folder / "checkpoint")]
    return Launch(command, {"PYTHONPATH": str(ROOT)})


ENGINES: dict[str, Callable[[Path, Path], Launch]] = {
    "flink": flink,
    "flink-row-by-row": flink_row_by_row,
    "spark": native,
    "tailrace": tailrace,
    "tailrace-1-executor": partial(tailrace_on_executors, 1),
    "tailrace-2-executors": partial(tailrace_on_executors, 2),
}
IN_TASKS: dict[str, Callable[[int], Callable[[Path, Path], Launch]]] = {
    "flink-row-by-row": lambda tasks: partial(flink_row_by_row, tasks=tasks),
    "tailrace": lambda tasks: partial(tailrace_in_tasks, tasks),
}
"""The engines of which a number of tasks can be asked for."""

COMPARED = ("flink", "flink-row-by-row", "spark", "tailrace")
"""The engines that are measured against each other."""

SCALED = ("tailrace", "tailrace-1-executor", "tailrace-2-executors")
"""Tailrace with its tasks in one process with the driver, in an executor, and in two."""


def can_run(engine: str, case: Case) -> bool:
    """Whether the engine can express the case."""
    return case.native if engine == "spark" else case.flink or not is_flink(engine)


def is_flink(engine: str) -> bool:
    """Whether the engine is Flink, with whatever settings."""
    return engine.startswith("flink")
