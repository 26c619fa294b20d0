"""Checks of the machine before anything starts: a Java runtime, free disk space, a free port."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

JAVA_NEEDED = 17
"""The oldest Java that Spark 4 runs on."""

_PORTS = (20_000, 32_000)
"""Above the ports that services are known by, below those of outgoing connections (from 32768 on Linux)."""

_reserved: set[int] = set()
"""Ports that this process has given: its own locks would not keep it from them."""


class MachineError(Exception):
    """Something that this machine lacks: `primary` says what, `hint` what to do; together they are one line."""

    def __init__(self, primary: str, hint: str | None = None) -> None:
        super().__init__(primary, hint)
        self.primary = primary
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.primary}; {self.hint}" if self.hint else self.primary


def find_java() -> str:
    """Return the path of a Java runtime that is new enough: that of JAVA_HOME where it is set, else the first on the
    PATH."""
    install = f"install a Java {JAVA_NEEDED} runtime (or newer) or point JAVA_HOME at one"
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        raise MachineError(f"no Java found in JAVA_HOME={home}" if home else "no Java found", install)
    try:
        # The variable that the JVM itself reads may add lines of its own before the version.
        printed = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(f"{found} does not run ({error})", install) from error
    version = java_version(printed)
    if version is None:
        raise MachineError(f"cannot tell the version of {found}", install)
    if version < JAVA_NEEDED:
        raise MachineError(f"{found} is Java {version}, Java {JAVA_NEEDED} or newer is needed", install)
    return found


def java_version(printed: str) -> int | None:
    """Return the feature release in what `java -version` says: 17 for "17.0.15", 8 for "1.8.0_402"."""
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match.group(1)) if match else None


def cores(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many cores this process may use, as a JVM counts them: those it may run on, and no more than its
    control groups are given the time of, a part of a core being one."""
    most = float(len(os.sched_getaffinity(0)))
    for quota in _quotas(proc / "self" / "cgroup", groups):
        most = min(most, quota)
    return max(1, math.ceil(most))


def memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return bytes of memory of this machine, or of the smallest control group that this process is in."""
    total = re.search(r"MemTotal:\s+(\d+) kB", (proc / "meminfo").read_text())
    assert total is not None, "/proc/meminfo always has a total"
    most = int(total[1]) * 1024
    for folder in _groups(proc / "self" / "cgroup", groups, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # "max" is no number
                most = min(most, int((folder / name).read_text()))
    return most


def _quotas(membership: Path, groups: Path) -> Iterator[float]:
    """Cores that the control groups of this process are limited to, its own and those above it."""
    for folder in _groups(membership, groups, "cpu"):
        yield from _quota(folder)


def _groups(membership: Path, groups: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups of this process, its own and those above it, of either version."""
    with suppress(OSError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            top = groups if not controllers else groups / controller if controller in controllers.split(",") else None
            if top is None:
                continue
            own = top / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(top))


def _quota(group: Path) -> Iterator[float]:
    with suppress(OSError):
        quota, period = (group / "cpu.max").read_text().split()
        if quota != "max":
            yield int(quota) / int(period)
    with suppress(OSError):
        taken = int((group / "cpu.cfs_quota_us").read_text())
        if taken > 0:
            yield taken / int((group / "cpu.cfs_period_us").read_text())


def free_ports(count: int) -> list[int]:
    """Return different TCP ports of this machine that nobody listens on.

    They are below the range from which systems choose the port of an outgoing connection: a client that keeps
    connecting to a stopped server could otherwise get the server's own port and connect to itself.
    """
    free: list[int] = []
    for port in random.sample(range(*_PORTS), 200):
        if len(free) == count:
            return free
        if _is_free(port) and _reserve(port):
            free.append(port)
    raise MachineError("no free ports found between {} and {}".format(*_PORTS))


def _is_free(port: int) -> bool:
    try:
        check_port(port)
    except MachineError:
        return False
    return True


def _reserve(port: int) -> bool:
    """Keep `port` from other processes of this user until this one ends; return whether nobody had it."""
    if port in _reserved:
        return False
    # One byte of a file for each port: the system releases a lock when its process ends.
    file = _reservations()
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _reserved.add(port)
    return True


@cache
def _reservations() -> int:
    """Return the file whose locks are the reservations. It stays open: closing it would release all of them."""
    path = Path(tempfile.gettempdir()) / f"tailrace-ports-{os.getuid()}"
    with writing_to(path.parent):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def check_port(port: int) -> None:
    """Raise an error if something already listens on `port` of this machine."""
    with closing(socket.socket()) as probe:
        # As Java's server sockets do: a port whose last connection still lingers is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise MachineError(f"port {port} is taken", "stop what listens there or choose another port") from error


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn a full disk or a folder that cannot be written, met inside the block, into one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(folder) from error
        raise MachineError(f"{folder} cannot be written ({error.strerror})", "check who owns it") from error


def disk_full(folder: Path) -> MachineError:
    """Return the error for a disk that filled up while `folder` was written."""
    return MachineError(f"the disk that holds {folder} is full", "make room and run it again")


def private_folder(folder: Path) -> Path:
    """Make `folder`, and those above it that are missing, so that nobody else may read what is in them.

    `mkdir` with `parents` gives those above the usual mode. Raises OSError.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)  # another task may have made it meanwhile
    return folder
