"""An engine that runs without an end beside the bench, and is stopped when the bench has seen enough."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.cases import Case
from bench.engines import ENGINES
from bench.measure import end, last_words


@contextmanager
def running(
    case: Case, engine: str, sql: str, variables: Mapping[str, str] | None = None
) -> Iterator[Callable[[], None]]:
    """Start `engine` on the text of a query; what is yielded raises when the engine has ended by itself."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        file = Path(scratch) / f"{case.query}.sql"
        file.write_text(sql)
        launch = ENGINES[engine](file, Path(scratch))
        log = file.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                launch.command,
                env=launch.environment | dict(variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

            def check() -> None:
                if process.poll() is not None:
                    raise RuntimeError(f"{engine} {last_words(process, log)}")

            try:
                yield check
            finally:
                end(process)


def wait_for(what: str, done: Callable[[], bool], check: Callable[[], None], patience: float) -> None:
    """Return when `done`; complain when it takes longer than `patience` seconds or the engine has ended."""
    deadline = time.monotonic() + patience
    while not done():
        check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {patience:.0f} s")
        time.sleep(0.1)
