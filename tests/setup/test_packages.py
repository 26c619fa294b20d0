from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("package", ["operators", "service"])
def test_every_folder_with_modules_is_installed(package: str):
    """A folder without __init__.py works in a checkout and is missing from the wheel."""
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
