"""Write the dashboards: `python -m monitoring [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from monitoring.dashboards import DASHBOARDS, text

FOLDER = Path(__file__).resolve().parent.parent / "charts" / "tailrace" / "dashboards"


def main() -> None:
    """Write each dashboard to its file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, dashboard in DASHBOARDS.items():
        (folder / f"{name}.json").write_text(text(dashboard), encoding="utf-8")


if __name__ == "__main__":
    main()
