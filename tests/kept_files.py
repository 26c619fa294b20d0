"""The small files of a checkpoint, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class KeptFiles:
    """What `read` and `write` of a checkpoint keep, by name."""

    files: dict[str, Any] = field(default_factory=dict)

    def read(self, name: str) -> Any:
        return self.files.get(name)

    def write(self, name: str, value: Any) -> None:
        self.files[name] = value
