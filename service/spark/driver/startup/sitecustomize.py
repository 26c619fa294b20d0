"""Read by every Python process that Spark starts, before anything else. This folder is on the path of those only."""

import os
import sys

STREAMING_SOURCE = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module of the process that serves a query's Python source for as long as the query runs."""


def _import_installed_packages() -> None:
    """Spark puts its own copy of PySpark first, in a zip file, which keeps no bytecode: all of it would be compiled."""
    sys.path.sort(key=lambda entry: entry.endswith(".zip"))


def _be_forked() -> None:
    """Have a helper of Spark's planner forked from a process that has its imports: `driver.fork_server`."""
    words = sys.orig_argv
    fork_server = os.environ.get("TAILRACE_FORK_SERVER")
    plans = len(words) > 3 and words[-3:-1] == ["-m", "pyspark.daemon"] and words[-1] != "pyspark.worker"
    if not fork_server or not (plans or words[-2:] == ["-m", STREAMING_SOURCE]):
        return
    # Spark waits for this process: `json` and `socket` import modules for twice the time of all else that it does.
    import _socket

    request = ascii({"arguments": words[-2:], "environment": dict(os.environ)}).encode()
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(fork_server)
        connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    except OSError:
        return
    # Input and output are the child's now: the JVM must see them end with it. This process waits for its end as another
    # program: an interpreter that waits holds ten megabytes.
    os.dup2(connection.fileno(), 0)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    connection.close()
    try:
        os.execv("/bin/cat", ["cat"])
    except OSError:
        os.read(0, 1)
        os._exit(0)


def end_with_the_query() -> None:
    """Have the process that serves a query's Python source end silently when Spark closes its connection.

    That is how it is stopped. It would try to report the closed connection over that connection, and fail.
    """
    shown = sys.excepthook

    def show(kind, error, traceback):  # type: ignore[no-untyped-def]  # importing types would cost each process time
        first = error
        while first.__context__ is not None:
            first = first.__context__
        stopped = isinstance(error, BrokenPipeError) and isinstance(first, (EOFError, ConnectionError))
        if not stopped:
            shown(kind, error, traceback)

    sys.excepthook = show


_import_installed_packages()
_be_forked()
if sys.orig_argv[-2:] == ["-m", STREAMING_SOURCE]:
    end_with_the_query()
