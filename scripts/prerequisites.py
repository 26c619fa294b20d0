"""What can be said about this machine before anything is fetched: is there a Java, and is there room?"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from service.host.machine import MachineError, find_java  # noqa: E402

NEEDED = 3_000_000_000
"""Bytes of the packages, the archives and a broker's data, with some to spare."""


def main() -> str | None:
    try:
        find_java()
    except MachineError as error:
        return f"error: {error}"
    free = shutil.disk_usage(ROOT).free
    if not (ROOT / ".venv" / "ready").exists() and free < NEEDED:
        return f"error: {ROOT} has {free / 1e9:.1f} GB left, about {NEEDED / 1e9:.0f} GB are needed; make room there"
    return None


if __name__ == "__main__":
    sys.exit(main())
