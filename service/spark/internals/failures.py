"""The classes of a failure that Spark reports, so that no decision rests on its words.

An exception of the JVM is walked over py4j, from cause to cause. An error of Python reaches the driver as text alone,
the traceback that the worker has printed. So the error takes a note along (PEP 678): one line with the names of its
classes, which every print of the traceback shows behind the error's own words. A second line has what the error has to
tell the driver beside (`for_driver`), if that is anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any, NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

_NOTE = "  tailrace-failure "
_FOR_DRIVER = "  tailrace-for-driver "
_TASK_FAILED = "org.apache.spark.SparkException"
PYTHON_ERROR = "org.apache.spark.api.python.PythonException"
"""The exception of a task whose Python worker has printed an error."""

_THROWN = re.compile(r"^(?:Caused by: |: |.*\breason: |.*\): )?((?:[a-z_]\w*\.)+[A-Z][\w$]*)(?::.*)?$", re.MULTILINE)
"""A line of a printed Java exception that names its class."""

_LONGEST_CHAIN = 30
"""The most exceptions of a chain that are read: each takes some calls into the JVM, and a cause may name itself."""

EXECUTOR_LOST = "ExecutorLostFailure"
"""Spark's reason for the failure of a task whose executor ended, in the place of an exception."""

OUTPUT_LOST = "org.apache.spark.shuffle.MetadataFetchFailedException"
"""The exception of a task that finds no output of a shuffle: the executor that wrote it has ended."""

WORKER_READER = "org.apache.spark.api.python.BasePythonRunner"
"""The class that reads what a Python worker writes. If an exception of Spark's own is thrown there, the worker has
ended; an error of the worker is a PythonException."""

_OF_A_TASK = re.compile(
    r"\(TID \d+\) \([^()\n]*\): (?P<reason>[\w.$]+)(?:(?!\n\tat )[\s\S])*(?:\n\tat (?P<thrown_at>[\w.]+))?"
)
"""The cause of a task's failure in the text of its stage's failure: the class of the reason, and the class of the first
frame."""


class Ended(Enum):
    """A process whose end has made a task fail."""

    WORKER = "a Python worker"
    EXECUTOR = "an executor"


class SparkFailure(NamedTuple):
    """A failure of Spark, as far as it is known: its text without notes, the classes of the Python error behind it (its
    own first; empty where there is none), and the exceptions of the JVM, the outermost first, each as its class and
    the classes above it. `for_driver` is what else the Python error reports, `ended` which process ended; None for
    nothing."""

    text: str
    python: tuple[str, ...]
    java: tuple[tuple[str, ...], ...]
    for_driver: Any = None
    ended: Ended | None = None

    def raised(self, *kinds: type[BaseException]) -> bool:
        """Return whether the Python error is an instance of one of `kinds`."""
        return any(class_name(kind) in self.python for kind in kinds)

    def thrown(self, *names: str) -> bool:
        """Return whether an exception of the JVM is an instance of one of these classes."""
        return any(name in classes for classes in self.java for name in names)


def class_name(kind: type) -> str:
    """Return the name of a class with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


@contextmanager
def noted() -> Iterator[None]:
    """Add the note to an error that leaves this block."""
    try:
        yield
    except Exception as error:
        note(error)
        raise


def note(error: Exception) -> None:
    """Add the names of the error's classes to what is printed of it, after its own text."""
    if not any(each.startswith(_NOTE) for each in getattr(error, "__notes__", ())):
        error.add_note(_NOTE + json.dumps(_names(type(error))))
        if getattr(error, "for_driver", None):
            error.add_note(_FOR_DRIVER + json.dumps(error.for_driver))  # type: ignore[attr-defined]


def without_notes(text: str) -> str:
    """Return the text without the lines that are for the driver."""
    return "\n".join(line for line in text.splitlines() if not line.startswith((_NOTE, _FOR_DRIVER)))


def failure_of(error: Exception) -> SparkFailure:
    """Return what is known of an error that a query or a call into the JVM has raised."""
    text = str(error)
    java: tuple[tuple[str, ...], ...] = ()
    with suppress(Py4JError, ConnectionError):  # of a JVM that is gone
        java = tuple(_chain(_java_exception(error)))
    if not java or java[-1][0] == _TASK_FAILED:  # Spark has kept only the text of a task's exception
        java += tuple((name,) for name in _THROWN.findall(text))
    # The text of a Python error may quote anything.
    process = None if any(PYTHON_ERROR in classes for classes in java) else _ended(text)
    ours = tuple(_noted_in(text, _NOTE) or ())
    if not ours and not isinstance(error, Py4JJavaError | CapturedException):
        ours = tuple(_names(type(error)))
    return SparkFailure(without_notes(text), ours, java, _noted_in(text, _FOR_DRIVER), process)


def _ended(text: str) -> Ended | None:
    """The process that ended in the middle of a batch, None if none did.

    Spark has no exception class for either, and keeps only the text of the task's failure. So this reads the places
    where Spark prints the class of a reason, and the class that threw it. The cause of the end is not known.
    """
    if OUTPUT_LOST in _THROWN.findall(text):
        return Ended.EXECUTOR
    failed = _OF_A_TASK.search(text)
    if failed is None:
        return None
    if failed["reason"] == EXECUTOR_LOST:
        return Ended.EXECUTOR
    at_worker = failed["reason"] == _TASK_FAILED and (failed["thrown_at"] or "").startswith(WORKER_READER)
    return Ended.WORKER if at_worker else None


def _names(kind: type) -> list[str]:
    return [class_name(each) for each in kind.__mro__ if each is not object]


def _noted_in(text: str, kind: str) -> Any:
    """The content of the last note of a kind, None if there is none: an error's own text comes before its notes."""
    for line in reversed(text.splitlines()):
        if line.startswith(kind):
            with suppress(ValueError):
                return json.loads(line.removeprefix(kind))
    return None


def _java_exception(error: Exception) -> Any:
    """The exception in the JVM behind an error of py4j or PySpark, None where there is none."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    if isinstance(error, CapturedException):
        # The exception of a query is made without its origin, but has the cause.
        origin, cause = error._origin, error._cause
        return origin if origin is not None or cause is None else _java_exception(cause)
    return None


def _chain(java: Any) -> Iterator[tuple[str, ...]]:
    for _ in range(_LONGEST_CHAIN):
        if java is None:
            return
        yield tuple(_classes(java.getClass()))
        java = java.getCause()


def _classes(kind: Any) -> Iterator[str]:
    while kind is not None:
        yield str(kind.getName())
        kind = kind.getSuperclass()
