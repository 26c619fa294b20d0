"""The driver is the parent of those who lost theirs: they leave nothing behind, and nobody else's child is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DRIVER = """
import os, subprocess, sys, time
from pathlib import Path
from service.spark.driver.reaper import adopt

adopt()
adopt()
mourned = [subprocess.Popen([sys.executable, "-c", "import sys; sys.exit(7)"], **how)
           for how in ({}, {"process_group": 0}, {"start_new_session": True})]
# Two that lead a group and are killed, and each leaves three orphans of that group behind, as a daemon of workers does.
orphans = []
for _ in range(2):
    daemon = subprocess.Popen(
        [sys.executable, "-c", '''
import os, time
for _ in range(3):
    if (pid := os.fork()) == 0:
        time.sleep(60)
    print(pid, flush=True)
print("done", flush=True)
time.sleep(60)
'''],
        stdout=subprocess.PIPE, process_group=0, text=True)
    orphans += [int(line) for line in iter(daemon.stdout.readline, "done\\n")]
    daemon.kill()
    assert daemon.wait() == -9
for pid in orphans:
    assert Path(f"/proc/{pid}").exists()
    os.kill(pid, 9)
until = time.monotonic() + 20
while any(Path(f"/proc/{pid}").exists() for pid in orphans):
    assert time.monotonic() < until, "they are still known"
    time.sleep(0.01)
assert [each.wait() for each in mourned] == [7, 7, 7]
print("well")
"""


def test_orphans_leave_nothing_behind_and_own_children_are_asked_for_by_who_started_them():
    run = subprocess.run([sys.executable, "-c", DRIVER], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("well\n", "")
