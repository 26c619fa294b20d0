"""Where the services of a test keep what is temporary."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where all processes of a service keep their temporary files; a short name, since sockets are among them."""
    folder = Path(tempfile.mkdtemp(prefix="tw-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
