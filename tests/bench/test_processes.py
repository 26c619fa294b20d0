"""The memory of an engine is that of all its processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.processes import Cpu, Held, Peak, family, memory_by_kind

MIB = 2**20
PROCESSES = [
    # pid, parent, command line, MiB of its own, MiB of files
    (10, 1, "python tailrace run q.sql", 100, 20),
    (11, 10, "/usr/bin/java @arguments PythonGatewayServer", 900, 60),
    (12, 11, "python -m service.spark.driver.worker_daemon pyspark.worker", 10, 30),
    (13, 12, "python -m service.spark.driver.worker_daemon pyspark.worker", 200, 40),
    (14, 11, "/usr/bin/java CoarseGrainedExecutorBackend --executor-id 0 --cores 1", 500, 50),
    (15, 14, "python -m service.spark.driver.worker_daemon pyspark.worker", 70, 30),
    (16, 10, "python -m service.spark.driver.fork_server socket", 30, 5),
    (17, 1, "python -m service.kafka.writer /run-a/scratch/w.socket 10", 80, 25),
    (18, 1, "python -m service.kafka.writer /run-b/scratch/w.socket 99", 81, 26),
    (19, 1, "python of somebody else", 1, 1),
]


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A system with the driver of one run, its executor, and the writers of two."""
    for pid, parent, command, own, mapped in PROCESSES:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a name) S {parent} 0 0")
        (folder / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        sizes = {"Pss": own + mapped, "Pss_Dirty": 1, "Pss_Anon": own, "Pss_File": mapped}
        (folder / "smaps_rollup").write_text("".join(f"{n}:  {1024 * size} kB\n" for n, size in sizes.items()))
    return tmp_path


def test_a_grandchild_belongs_to_the_family():
    nested = f"import subprocess, sys; subprocess.run([{sys.executable!r}, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE) as child:
        deadline = time.monotonic() + 20
        while len(family(child.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        members = family(child.pid)
        child.communicate(b"\n")
    assert members[0] == child.pid
    assert len(members) == 2


def test_a_process_that_has_left_belongs_to_the_family_if_it_names_the_folder_of_the_run(proc: Path):
    assert sorted(family(10, Path("/run-a"), proc)) == [10, 11, 12, 13, 14, 15, 16, 17]
    assert sorted(family(10, None, proc)) == [10, 11, 12, 13, 14, 15, 16]
    assert family(20, None, proc) == []


def test_memory_is_reported_by_kind_of_process(proc: Path):
    held = memory_by_kind(10, Path("/run-a"), proc)
    assert {kind: (each.own // MIB, each.mapped // MIB) for kind, each in held.items()} == {
        "driver": (100, 20),
        "JVM": (900, 60),
        "executor JVM": (500, 50),
        "workers": (10 + 200 + 70, 30 + 40 + 30),
        "writer": (80, 25),
        "helpers": (30, 5),
    }


def test_the_peak_is_the_most_that_a_process_has_held(tmp_path: Path):
    peak = Peak(os.getpid(), tmp_path)
    peak.look()
    before = peak.bytes
    held = bytearray(os.urandom(1)) * 50_000_000
    assert len(held) == 50_000_000
    peak.look()
    del held
    peak.look()
    assert peak.bytes - before > 40_000_000


def test_memory_is_recounted_only_when_more_is_resident(proc: Path):
    peak = Peak(10, Path("/run-a"), proc)
    for resident, expected in ((1000, 2150), (1005, 2150), (1020, 2250)):
        for entry in proc.iterdir():
            (entry / "statm").write_text(f"9999 {resident} 1 1 0 1 0")
        peak.look()
        assert peak.bytes == expected * MIB
        (proc / "10" / "smaps_rollup").write_text(f"Pss:  {220 * 1024} kB\n")


def test_a_process_that_exits_keeps_its_kind(proc: Path):
    cpu = Cpu(10, Path("/run-a"), proc)
    (proc / "11" / "stat").write_text("11 (java) S 10" + " 0" * 9 + " 300 100 0")
    cpu.look()
    (proc / "11" / "cmdline").write_text("")
    (proc / "11" / "stat").write_text("11 (java) Z 10")
    cpu.look()
    assert cpu.by_kind()["JVM"] == pytest.approx(400 / os.sysconf("SC_CLK_TCK"))


def test_own_and_mapped_memory_add_up():
    assert Held(1, 2) + Held(10, 20) == Held(11, 22)
    assert Held(1, 2).all == 3
