"""An engine that runs without an end beside the bench, and is stopped when the bench has seen enough."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cases import Case
from bench.engines import ENGINES, Launch
from bench.measure import end, last_words, litter, sweep

Launcher = Callable[[Path, Path], Launch]
"""What starts an engine on a SQL file, with a folder for what it keeps."""


@dataclass(frozen=True, slots=True)
class Service:
    """An engine that was started in `folder`, where everything is that it keeps."""

    engine: str
    folder: Path
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise RuntimeError when the engine has ended by itself."""
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.engine} {last_words(self.process, self.log)}")


@contextmanager
def running(
    case: Case, engine: str, sql: str, variables: Mapping[str, str] | None = None, launcher: Launcher | None = None
) -> Iterator[Service]:
    """Start `engine` on the text of a query, in a folder of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        running_in(Path(folder), case, engine, sql, variables, launcher) as service,
    ):
        yield service


@contextmanager
def running_in(
    folder: Path,
    case: Case,
    engine: str,
    sql: str,
    variables: Mapping[str, str] | None = None,
    launcher: Launcher | None = None,
) -> Iterator[Service]:
    """Start `engine` in `folder`; where it has run there before it goes on. `launcher` starts it in another way."""
    file = folder / f"{case.query}.sql"
    file.write_text(sql)
    launch = (launcher or ENGINES[engine])(file, folder)
    before = litter(launch)
    log = file.with_suffix(".log")
    with log.open("ab") as output:
        process = subprocess.Popen(
            launch.command,
            env=launch.environment | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield Service(engine, folder, process, log)
        finally:
            end(process, folder)
            sweep(launch, before)


def wait_for(what: str, done: Callable[[], bool], check: Callable[[], None], patience: float) -> None:
    """Return when `done`; complain when it takes longer than `patience` seconds or the engine has ended."""
    deadline = time.monotonic() + patience
    while not done():
        check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {patience:.0f} s")
        time.sleep(0.1)
