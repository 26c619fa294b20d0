"""A list of Java archives, each with the sha256 that its bytes must have.

A list is a TOML file, `NAME.toml`, whose table `archives` maps "group:artifact:version" to a sha256. Some come with
Tailrace: `spark`, `kafka` (the local broker), and `s3a` and `gs` (checkpoints in object stores). Any other is a path.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive, by its Maven coordinates."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, slots=True)
class Listing:
    """The archives that one Java program needs beside each other, under a name."""

    name: str
    archives: tuple[Archive, ...]


def load(name_or_path: str | Path) -> Listing:
    """Read the list called `spark` or `kafka`, or the list at a path."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = Path(__file__).with_name(f"{name_or_path}.toml")
    rows = tomllib.loads(path.read_text())["archives"]
    return Listing(path.stem, tuple(Archive(*_coordinates(row), sha256) for row, sha256 in rows.items()))


def _coordinates(row: str) -> tuple[str, str, str]:
    match row.split(":"):
        case [group, artifact, version]:
            return group, artifact, version
    raise ValueError(f'"{row}" is not of the form group:artifact:version')
