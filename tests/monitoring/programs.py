"""Prometheus and promtool: those of this machine, else those of Debian's package, unpacked into .cache without being
installed. Neither root nor a package database of one's own is needed for that."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "prometheus"
PACKAGE = "prometheus"


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`."""
    unpacked = FOLDER / "usr" / "bin" / name
    found = shutil.which(name) or (str(unpacked) if unpacked.exists() else None)
    if found:
        return found
    if not shutil.which("apt-get"):
        pytest.skip(f"this machine has no {name}, and no apt-get to fetch it with; put it on the PATH")
    _fetch()
    return str(unpacked)


def _fetch() -> None:
    """Fetch and unpack the package, once, whatever number of processes ask for it."""
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if FOLDER.exists():
            return
        work = FOLDER.with_name(f"{FOLDER.name}.{os.getpid()}")
        try:
            _unpack(work)
            (work / "root").rename(FOLDER)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _unpack(work: Path) -> None:
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    # The lists of packages and what is fetched are ours; where it comes from, and by whose keys it is checked, is the
    # machine's own.
    own = [f"Dir::State::lists={work}/lists", f"Dir::Cache={work}/cache", "Debug::NoLocking=1", "APT::Sandbox::User="]
    apt = ["apt-get", "--quiet=2", *(word for setting in own for word in ("-o", setting))]
    _run([*apt, "update"], work)
    _run([*apt, "download", PACKAGE], work)
    (package,) = work.glob(f"{PACKAGE}_*.deb")
    _run(["dpkg-deb", "--extract", str(package), str(work / "root")], work)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(f"{command[0]} cannot fetch {PACKAGE}: {lines[-1] if lines else done.returncode}")
