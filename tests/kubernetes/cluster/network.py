"""Who listens where on the machine of the cluster, which has no network but its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

MACHINE = "10.17.0.1"
"""The machine itself: the API server, and whatever a test runs beside the cluster, Kafka first of all."""

API_SERVER = f"https://{MACHINE}:6443"
NAME_SERVER = "10.17.0.10"
SERVICES = "10.96.0.0/16"
DOMAIN = "cluster.local"


def node_address(number: int) -> str:
    """The address of a node, counted from 1."""
    return f"10.17.1.{number}"


def pod_range(number: int) -> str:
    """The addresses of a node's pods."""
    return f"10.200.{number}.0/24"


def start() -> None:
    """Bring up the loopback."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def add_address(address: str) -> None:
    """Let processes of this machine listen on `address`."""
    subprocess.run(["ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True)


def private() -> bool:
    """Whether this process is on a machine of its own, where it may do as it likes: one that has only a loopback."""
    return [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]] == ["lo"]
