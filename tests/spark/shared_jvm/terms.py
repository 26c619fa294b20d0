"""What a shared JVM was started with, and what a service needs of one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.spark.driver.class_path import class_path, spark_home
from service.spark.driver.jvm import options

FOLDER = "SHARED_JVM"
"""The environment variable with the folder of the JVM."""

ADDRESS, LOCK, LOG = "address", "lock", "log"
"""The files in that folder: how the JVM is reached and what it was started with, the lock and the process id of the
service that uses it, and what the JVM prints."""

_NO_TERMS = ("TAILRACE_", "PYTEST_", "PYSPARK_", "SPARK_", FOLDER)
"""The first letters of environment variables that the JVM and its Python workers do not read, or that PySpark sets."""

BEFORE_TESTS = dict(os.environ)
"""The environment before any test has changed it."""


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have nothing but these variables in the environment."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def started_with(settings: Mapping[str, str], jars: Sequence[Path], clients: Sequence[Path] = ()) -> dict[str, object]:
    """Return what a JVM with these settings is started with: its options, its class path and its environment."""
    return {
        "options": options(settings, jars),
        "class_path": class_path(spark_home(), jars, settings, clients),
        "environment": {name: text for name, text in os.environ.items() if not name.startswith(_NO_TERMS)},
    }
