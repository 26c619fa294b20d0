"""Run the writer process: `python -m service.kafka.writer SOCKET PARENT_PID`.

Tasks start it; nobody else needs to. It forks and its first process ends, so that it outlives the task and is nobody's
zombie.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import signal
import socket
import sys
from pathlib import Path


def main(socket_path: Path, parent_pid: int) -> None:
    """Become the one writer process of `socket_path`, or exit if there is one."""
    faulthandler.register(signal.SIGUSR1)  # kill -USR1 shows in the log what each thread is doing
    own = os.open(socket_path.with_suffix(".owner"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another writer process serves this socket")
    socket_path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        os.umask(0o077)
        listener.bind(str(socket_path))
        from service.host.clock_watch import clock_watched, end_at_once
        from service.kafka.writer.server import Server

        listener.listen(128)
        with clock_watched(lambda _: end_at_once(1)):  # a task whose writer has ended is tried again
            Server(listener).serve(parent_pid, socket_path)
    os._exit(0)  # threads that still wait for Kafka must not keep the process alive


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    main(Path(sys.argv[1]), int(sys.argv[2]))
