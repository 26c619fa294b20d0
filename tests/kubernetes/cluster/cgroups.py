"""Control groups of the cluster, below one folder beside those of the machine, which goes when the cluster has gone."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
FOLDER = "tailrace-test-cluster"
"""tests/kubernetes/machine removes it at the end."""


def make_cgroup(name: str) -> str:
    """Make a group of this name, for all controllers there are; its path, as a kubelet takes it."""
    if (ROOT / "cgroup.controllers").exists():
        for parent in (ROOT, ROOT / FOLDER):
            parent.mkdir(exist_ok=True)
            wanted = {"cpu", "cpuset", "io", "memory", "pids", "hugetlb"}
            there = set((parent / "cgroup.controllers").read_text().split())
            (parent / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in sorted(wanted & there)))
        hierarchies = [ROOT]
    else:
        hierarchies = [each for each in ROOT.iterdir() if (each / "cgroup.procs").exists()]
    for hierarchy in hierarchies:
        (hierarchy / FOLDER / name).mkdir(parents=True, exist_ok=True)
    return f"/{FOLDER}/{name}"
