"""A process with PySpark already imported, from which Spark's planning helpers are forked.

To start a query Spark runs half a dozen helpers in Python, one after another: to find a data source, to make it, to
plan its reader and its writer, and to serve it. Each is a new process that imports PySpark and Arrow first, half a
second of a core. So one process imports them while the JVM starts. `startup/sitecustomize.py`, which Python runs first
in each new helper, passes the helper's streams to it, and a forked child does the work. A helper that cannot reach this
process starts as usual.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from service.spark.internals.workers import HELPERS, daemon_manager

VARIABLE = "TAILRACE_FORK_SERVER"
"""The environment variable with the path of the socket."""

PRELOADED = (
    *HELPERS,
    "pyarrow.compute",
    "pyspark.sql.pandas.serializers",
    "service.spark.query.heartbeat",
)

LARGEST = 1 << 18
"""The bytes of the longest request: the environment of a process and its command."""


def main() -> NoReturn:
    """Serve the helpers of Spark's planner."""
    serve_forks(sys.argv[1], PRELOADED, _help)


def serve_forks(address: str, modules: Sequence[str], work: Callable[[Sequence[str]], None]) -> NoReturn:
    """Import the modules, then fork a child for each process that asks at the socket `address`, until standard input
    closes. The child calls `work` with the arguments of that process, in its place."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    gc.disable()  # an import leaves no garbage: to look for it takes a tenth of the time
    for module in modules:
        with suppress(ImportError):  # a helper that this PySpark has in another place starts by itself
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(0)
        asking, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _take_place(asking, work)
        asking.close()


def _take_place(asking: socket.socket, work: Callable[[Sequence[str]], None]) -> NoReturn:
    """Take over the streams, the environment and the work of the process that asks.

    `asking` stays open: that process waits for its end, which is how it learns of ours.
    """
    code = 1
    try:
        message, streams, _, _ = socket.recv_fds(asking, LARGEST, 3)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        request = ast.literal_eval(message.decode())
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = list(request["arguments"])
        sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115  (for the life of the process)
        sys.stderr = open(2, "w")  # noqa: SIM115
        work(request["arguments"])
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    finally:
        os._exit(code)


def _help(arguments: Sequence[str]) -> None:
    startup = importlib.import_module("sitecustomize")
    if arguments[-1] != startup.STREAMING_SOURCE:
        daemon_manager()()
        return
    startup.end_with_the_query()
    try:
        runpy.run_module(arguments[-1], run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


if __name__ == "__main__":
    main()
