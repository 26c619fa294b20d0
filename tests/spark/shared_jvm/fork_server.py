"""`python -m tests.spark.shared_jvm.fork_server` has imported the service, and is forked for each start of one.

A request is a line of JSON on standard input: the name of the module to run, its arguments, its folder, its environment
and its log. An answer is a line on standard output: the process id of a child, or one that has ended and its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

PRELOADED = (
    "service.cli",
    "service.run",
    "service.spark.driver.jvm_exit",
    "service.spark.supervision.jobs",
    "tests.spark.shared_jvm.terms",
)


def main() -> NoReturn:
    """Import the modules, then fork a child for each request, until standard input closes."""
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = selectors.DefaultSelector()
    waiting.register(0, selectors.EVENT_READ)
    waiting.register(woken, selectors.EVENT_READ)
    rest = b""
    while True:
        ready = {key.fd for key, _ in waiting.select()}
        if woken in ready:
            os.read(woken, 4096)
            _report_ended()
        if 0 in ready:
            read = os.read(0, 1 << 20)
            if not read:
                os._exit(0)
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    waiting.close()
                    os.close(woken)
                    os.close(wake)
                    _become(json.loads(line))
                print(pid, flush=True)


def _report_ended() -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            print(pid, os.waitstatus_to_exitcode(status), flush=True)


def _become(request: Mapping[str, Any]) -> NoReturn:
    """Run what a request names in this process, which ends with it."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, stream in enumerate((nothing, log, log)):
        os.dup2(stream, number)
    os.close(nothing)
    os.close(log)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["tailrace", *request["arguments"]]
    sys.stdout = open(1, "w", buffering=1)  # noqa: SIM115  (for the life of the process)
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
