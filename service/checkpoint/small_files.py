"""The small JSON files that the driver keeps in a checkpoint, for a process that has no JVM."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from service.checkpoint.files import Files

FOLDER = "tailrace"

QUERY = "fixed"
"""The small file that says which query the state belongs to, and from which batch on
(`service.deployment.upgrading`)."""

PLAN_NUMBER = "plan"
"""The small file with the plan number: how often a batch was given up, or its earlier attempts were fenced
(`service.deployment.replanning`)."""


class SmallFiles:
    """The files that `service.spark.supervision.checkpoint.Checkpoint` keeps, read and written through `Files`."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def read(self, name: str) -> Any:
        """Return the value of a file, None where it was never written."""
        written = self._files.get(f"{FOLDER}/{name}.json")
        if written is not None:
            return json.loads(written)
        # A process that was killed while it replaced the file has left the new one, whole; one killed earlier, a part
        # of it.
        with suppress(ValueError):
            return json.loads(self._files.get(f"{FOLDER}/{name}.new.json") or b"null")
        return None

    def write(self, name: str, value: Any) -> None:
        """Replace a file, as a whole."""
        self._files.remove([f"{FOLDER}/.{name}.json.crc"])  # Hadoop's checksum of the previous content
        self._files.put(f"{FOLDER}/{name}.json", [json.dumps(value).encode()])
