"""Services of a test, ended with it whatever happens, and where they keep what is temporary."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.service_process import ServiceProcess
from tests.spark.shared_jvm.jvm import SharedJvms


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where all processes of a service keep their temporary files; a short name, since sockets are among them."""
    folder = Path(tempfile.mkdtemp(prefix="tw-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def service(tmp_path: Path, jvms: SharedJvms) -> Iterator[Callable[..., ServiceProcess]]:
    """Makes services: `service(pipeline, bootstrap, BATCH__ROWS="10")`. Their folder is the test's, or `folder`. They
    share a JVM, unless it is their own by `own_jvm`: where a test looks at the service's processes."""
    made: list[ServiceProcess] = []

    def make(
        pipeline: str, bootstrap: str, folder: Path = tmp_path, own_jvm: bool = False, **settings: str
    ) -> ServiceProcess:
        folder.mkdir(exist_ok=True)
        made.append(ServiceProcess(pipeline, folder, bootstrap, jvms=None if own_jvm else jvms, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()
