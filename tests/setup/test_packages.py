"""What is installed is all that is there: modules, and the files beside them."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("package", ["operators", "service"])
def test_every_folder_with_modules_is_installed(package: str):
    """A folder without __init__.py works in a checkout and is missing from the wheel."""
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("package", ["operators", "service"])
def test_every_file_beside_the_modules_is_installed(package: str):
    """Style sheets and lists work in a checkout and are missing from the wheel unless a pattern names them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    beside = [path for path in files if path.suffix != ".py"]
    assert [str(p) for p in sorted(beside) if not any(fnmatch(p.name, pattern) for pattern in patterns)] == []
