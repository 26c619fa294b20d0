"""The programs of the cluster, built once from the Go modules that tests/kubernetes/tools names."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache" / "kubernetes"
TOOLS = CACHE / "tools"


def tool(name: str) -> str:
    """The path of a program; `make k8s-tools` puts it there."""
    path = TOOLS / name
    assert path.exists(), f"{path} is missing; run `make k8s-tools`"
    return str(path)
