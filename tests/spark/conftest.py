"""Services of a test, ended with it whatever happens, and where they keep what is temporary."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.service_process import ServiceProcess


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where all processes of a service keep their temporary files; a short name, since sockets are among them."""
    folder = Path(tempfile.mkdtemp(prefix="tw-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., ServiceProcess]]:
    """Makes services: `service(pipeline, bootstrap, BATCH__ROWS="10")`. Their folder is the test's, or `folder`."""
    made: list[ServiceProcess] = []

    def make(pipeline: str, bootstrap: str, folder: Path = tmp_path, **settings: str) -> ServiceProcess:
        folder.mkdir(exist_ok=True)
        made.append(ServiceProcess(pipeline, folder, bootstrap, **settings))
        return made[-1]

    yield make
    for each in made:
        each.kill()
