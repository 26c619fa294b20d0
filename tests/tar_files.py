"""Archives of tests, unpacked in the same way by every Python that the project supports."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder, with the filter "data" where this Python has it. Raises tarfile.TarError.

    Python 3.11 has filters since 3.11.4, and Debian 12 has 3.11.2.
    """
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        packed.extractall(folder)
