"""What a machine lacks, a JVM or a free port, is reported in words that help."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from service.host import machine
from service.host.machine import (
    MachineError,
    check_port,
    cores,
    find_java,
    free_ports,
    java_version,
    memory,
    private_folder,
    writing_to,
)


def fake_java(folder: Path, says: str) -> Path:
    """A Java home whose `java` prints `says` as its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.2" 2022-01-18', 17),
        ("bash: java: a stub", None),
    ],
)
def test_the_feature_release_is_read_from_what_java_says(printed: str, version: int | None):
    assert java_version(printed) == version


def test_java_home_is_asked_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "17.0.1"')))
    assert find_java() == str(tmp_path / "bin" / "java")


def test_on_a_machine_without_java_the_way_to_install_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"^no Java found; install a Java 17 runtime"):
        find_java()


def test_an_old_java_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, 'openjdk version "11.0.2"')))
    with pytest.raises(MachineError, match=r"bin/java is Java 11, Java 17 or newer is needed"):
        find_java()


def test_a_taken_port_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(MachineError, match=f"^port {port} is taken; "):
            check_port(port)


def test_free_ports_are_different_and_none_that_an_outgoing_connection_is_given():
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        check_port(port)
        assert 20_000 <= port < 32_000


def test_no_two_processes_are_given_the_same_port(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("random.sample", lambda ports, _: list(ports[7_000:7_200]))
    ours = free_ports(3)
    assert not set(free_ports(2)) & set(ours)
    script = (
        "import random\n"
        "from service.host.machine import free_ports\n"
        "random.sample = lambda ports, _: list(ports[7_000:7_200])\n"
        "print(*free_ports(3))"
    )
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert not {int(port) for port in printed.split()} & set(ours)


def test_a_folder_in_which_no_port_can_be_reserved_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "gone"))
    machine._reservations.cache_clear()
    try:
        with pytest.raises(MachineError, match=r"gone cannot be written \(No such file or directory\)"):
            free_ports(1)
    finally:
        machine._reservations.cache_clear()


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, "the disk that holds /data is full"), (errno.EROFS, "/data cannot be written (Read-only")],
)
def test_an_error_of_the_disk_becomes_one_line(number: int, expected: str):
    with pytest.raises(MachineError) as caught, writing_to(Path("/data")):
        raise OSError(number, "Read-only file system")
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("membership", "groups", "allowed"),
    [
        ("0::/", {}, 64),
        ("0::/", {"cpu.max": "max 100000"}, 64),
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "10000 100000"}, 1),
        ("0::/", {"cpu.max": "9900000 100000"}, 64),
        (
            "0::/pods/a",
            {"cpu.max": "400000 100000", "pods/cpu.max": "300000 100000", "pods/a/cpu.max": "max 100000"},
            3,
        ),
        ("0::/of/the/host", {"cpu.max": "200000 100000"}, 2),
        ("5:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, 3),
        ("5:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 64),
        ("5:cpuset:/a", {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, 64),
    ],
)
def test_the_cores_of_a_container_are_those_that_it_may_use(
    membership: str, groups: dict[str, str], allowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(64)))
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(f"{membership}\n")
    for name, value in groups.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    assert cores(tmp_path / "proc", tmp_path / "groups") == allowed


def test_where_no_control_groups_are_the_cores_are_those_that_the_process_may_run_on(tmp_path: Path):
    assert cores(tmp_path, tmp_path) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("membership", "groups", "allowed"),
    [
        ("0::/", {}, 8_000_000 * 1024),
        ("0::/", {"memory.max": "max"}, 8_000_000 * 1024),
        ("0::/a/b", {"a/memory.max": "1000", "a/b/memory.max": "2000"}, 1000),
        ("5:memory:/a", {"memory/a/memory.limit_in_bytes": "3000"}, 3000),
        ("5:cpuset:/a", {"memory/a/memory.limit_in_bytes": "3000"}, 8_000_000 * 1024),
    ],
)
def test_the_memory_of_a_container_is_what_it_may_use(
    membership: str, groups: dict[str, str], allowed: int, tmp_path: Path
):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:        8000000 kB\nMemFree: 1 kB\n")
    (tmp_path / "proc" / "self" / "cgroup").write_text(f"{membership}\n")
    for name, value in groups.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    assert memory(tmp_path / "proc", tmp_path / "groups") == allowed


def test_a_private_folder_and_those_that_it_needs_are_closed_to_others(tmp_path: Path):
    tmp_path.chmod(0o755)
    made = private_folder(tmp_path / "a" / "b")
    assert private_folder(made) == made
    assert [f"{stat.S_IMODE(each.stat().st_mode):o}" for each in (made, made.parent, tmp_path)] == ["700", "700", "755"]
