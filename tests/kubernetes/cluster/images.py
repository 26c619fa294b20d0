"""The images of the cluster as containerd keeps them: unpacked once, shared by all nodes, since nobody changes them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.cluster.process import Process
from tests.kubernetes.cluster.tools import CACHE, tool

FOLDER = CACHE / "image"
ARCHIVES = ("base.tar", "tailrace.tar")
"""What `make k8s-image` makes, each with a file that holds the id of its image."""


def unpacked() -> Path:
    """A root folder of containerd that holds the images; it is made where an image has changed."""
    store = FOLDER / "unpacked"
    stamp = store / "of"
    wanted = "".join((FOLDER / f"{archive}.id").read_text() for archive in ARCHIVES)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir()
        _import([FOLDER / archive for archive in ARCHIVES], store)
        stamp.write_text(wanted)
    return store / "root"


def share(root: Path, copy: Path) -> None:
    """Make a copy of a root folder of containerd: its files are the same ones, but for the data bases."""
    subprocess.run(["cp", "--archive", "--link", str(root), str(copy)], check=True)
    for database in copy.rglob("*.db"):
        own = database.with_suffix(".own")
        shutil.copyfile(database, own)
        own.replace(database)


def _import(archives: Sequence[Path], store: Path) -> None:
    socket = store / "socket"
    settings = store / "containerd.toml"
    settings.write_text(
        f'version = 3\nroot = "{store / "root"}"\nstate = "{store / "state"}"\n[grpc]\n  address = "{socket}"\n'
    )
    containerd = Process("containerd", [tool("containerd"), f"--config={settings}"], store)
    try:
        containerd.ready("containerd answers", lambda: "successfully booted" in containerd.log.read_text())
        for archive in archives:
            command = [tool("ctr"), "--namespace=k8s.io", f"--address={socket}", "images", "import"]
            command += ["--local", "--discard-unpacked-layers", str(archive)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{archive} cannot be imported:\n{done.stderr}"
    finally:
        containerd.stop()
