"""What a machine lacks for the tests on a cluster is said in one line, before anything is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREREQUISITES = ROOT / "tests" / "kubernetes" / "prerequisites"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the test cluster needs Linux")


def test_what_is_missing_is_named_with_the_packages_that_have_it(tmp_path: Path):
    for name in ("sh", "dirname", "id", "uname"):
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    ended = subprocess.run([PREREQUISITES], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: not found: buildah")
    assert "on Debian: apt-get install" in ended.stderr
    assert ended.stderr.count("\n") == 1
