"""The working folders of executors of Spark's local cluster, which it puts beside its archives."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from service.spark.driver.class_path import spark_home
from tests.spark.service_process import all_processes


def remove_unused_folders() -> None:
    """Remove the folder of each application in which no process works: tests run side by side, and so do clusters."""
    folder = (spark_home() / "work").resolve()
    applications = list(folder.iterdir()) if folder.is_dir() else []
    used = set(_working_folders())  # after the list: a cluster that starts meanwhile is not on it
    for application in applications:
        if not any(application in (each, *each.parents) for each in used):
            shutil.rmtree(application, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


def _working_folders() -> Iterator[Path]:
    for process in all_processes():
        with suppress(OSError):
            yield Path(os.readlink(f"/proc/{process}/cwd"))
