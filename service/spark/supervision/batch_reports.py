"""How the driver hears what its batches counted: the sink's `commit` tells it over a Unix socket, once a batch."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from traceback import print_exc
from typing import Any


class BatchReportListener:
    """Listens in a thread of its own and hands each message to `hear`."""

    def __init__(self, path: Path, hear: Callable[[dict[str, Any]], None]) -> None:
        self._hear = hear
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._listen, name="figures", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                text = stream.read()
            if text:
                self._tell(text)

    def _tell(self, text: bytes) -> None:
        """Whatever fails in `hear` costs this message only: with nobody to listen, batches would wait."""
        try:
            self._hear(json.loads(text))
        except Exception:
            with suppress(OSError):  # of a standard error that is closed, too
                print_exc()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
