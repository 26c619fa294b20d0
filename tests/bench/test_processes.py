"""The memory of an engine is that of all its processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.processes import family, memory


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


def test_memory_counts_what_a_process_holds():
    before = memory(os.getpid())
    held = bytearray(os.urandom(1)) * 50_000_000
    assert memory(os.getpid()) - before > 40_000_000
    assert len(held) == 50_000_000
