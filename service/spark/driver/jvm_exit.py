"""Exits of the driver's JVM, noticed by the calls into it that fail."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError, Py4JJavaError

from service.spark.driver.jvm import Jvm, JvmFailed

NO_JVM = (Py4JError, ConnectionError)
"""Exceptions raised by calls into a JVM that has exited."""

EXITED = "the JVM has exited; restart the service, it continues from its checkpoint"

_SOCKETS_CLOSE_BEFORE = 5.0
"""Seconds to wait for the exit of a JVM whose sockets have closed: they close a moment before it has exited."""


def has_exited(jvm: Jvm, error: Exception | None = None) -> bool:
    """Return whether the JVM has exited; `error` was raised by a call into it."""
    if isinstance(error, NO_JVM) and not isinstance(error, Py4JJavaError):
        with suppress(subprocess.TimeoutExpired):
            jvm.process.wait(_SOCKETS_CLOSE_BEFORE)
    return jvm.process.poll() is not None


@contextmanager
def exit_noticed(jvm: Jvm) -> Iterator[None]:
    """Raise JvmFailed in place of what a call in the block raises because the JVM has exited."""
    try:
        yield
    except NO_JVM as error:
        if not has_exited(jvm, error):
            raise
        raise JvmFailed(EXITED) from error
