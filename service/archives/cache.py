"""The folder that keeps the archives: what is in it is checked each time, what is missing is fetched once."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import service
from service.archives.ivy import fetch
from service.archives.listing import Archive, Listing
from service.host.machine import MachineError, writing_to

FOLDER = "TAILRACE_ARCHIVES"


def cache_folder() -> Path:
    """Return TAILRACE_ARCHIVES, else `.cache/archives` in a checkout, else the user's cache folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given).absolute()
    checkout = Path(service.__file__).parent.parent
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".cache" / "archives"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace" / "archives"


def ensure(listing: Listing, folder: Path | None = None) -> tuple[Path, ...]:
    """Return the paths of the archives of `listing`, every one checked; those that are missing or damaged are fetched.

    With all of them there it needs neither the network nor Java. Two processes may do this at the same time: an archive
    appears in the folder whole, or not.
    """
    home = (folder or cache_folder()) / listing.name
    missing = [archive for archive in listing.archives if not _is_right(home / archive.file_name, archive)]
    if missing:
        with writing_to(home):
            _fill(home, missing, listing.name)
    return tuple(home / archive.file_name for archive in listing.archives)


def _fill(home: Path, missing: list[Archive], name: str) -> None:
    work = home.with_name(f".{name}-{os.getpid()}")
    work.mkdir(parents=True, exist_ok=True)
    try:
        print(f"fetching {len(missing)} Java archives ({name})", file=sys.stderr, flush=True)
        fetch(missing, work)
        home.mkdir(exist_ok=True)
        for archive in missing:
            _check(work / archive.file_name, archive)
            (work / archive.file_name).replace(home / archive.file_name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _is_right(path: Path, archive: Archive) -> bool:
    return path.is_file() and _sha256(path) == archive.sha256


def _check(path: Path, archive: Archive) -> None:
    actual = _sha256(path)
    if actual != archive.sha256:
        raise MachineError(
            f"{archive} was fetched with sha256 {actual}, the list says {archive.sha256}",
            "do not use it: its source does not serve the verified file",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
