"""The driver hears of every batch, whatever becomes of what it does with that."""

from __future__ import annotations

import json
import queue
import socket
import struct
from pathlib import Path
from typing import Any

from service.spark.supervision.batch_reports import BatchReportListener


def tell(path: Path, batch: int) -> None:
    """What the sink does after a batch."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))
        connection.connect(str(path))
        connection.sendall(json.dumps({"batch": batch}).encode())


def test_a_message_that_cannot_be_handled_does_not_keep_the_next_ones_from_being_heard(tmp_path: Path):
    heard: queue.Queue[int] = queue.Queue()

    def hear(told: dict[str, Any]) -> None:
        if told["batch"] == 0:
            raise BrokenPipeError("nobody reads")
        heard.put(told["batch"])

    listener = BatchReportListener(tmp_path / "driver", hear)
    for batch in range(100):
        tell(tmp_path / "driver", batch)
    assert [heard.get(timeout=10) for _ in range(99)] == list(range(1, 100))
    listener.close()
