"""The image's recipe. What it makes is run by the tests of the cluster, as user 185 on a read-only root."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from service import __version__

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "image").iterdir())


def test_hadolint_finds_nothing_in_the_dockerfile():
    hadolint = Path(sys.executable).with_name("hadolint")
    found = subprocess.run([hadolint, "--no-color", "Dockerfile"], cwd=ROOT, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_of_the_image_is_part_of_its_recipe(name: str):
    assert f"image/{name}" in (ROOT / "Dockerfile").read_text()


def test_image_chart_and_service_are_of_one_version():
    chart = ROOT / "charts" / "tailrace"
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert re.findall(r"^ARG VERSION=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE) == [__version__]
    assert metadata["version"] == metadata["appVersion"] == __version__
    assert set(re.findall(r"/tailrace:([\d.]+\d)", (chart / "README.md").read_text())) == {__version__}


def test_what_the_recipe_copies_is_let_into_the_build():
    """.dockerignore keeps out everything that it does not name."""
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [
        source
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from=" not in line
        for source in line.split()[1:-1]
    ]
    assert copied
    assert {source.split("/")[0] for source in copied} <= allowed
    assert all((ROOT / source).exists() for source in copied)
