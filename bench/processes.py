"""The memory of a process and of all that it started."""

from __future__ import annotations

from pathlib import Path


def family(pid: int) -> list[int]:
    """`pid` and its descendants that are alive now."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name in parentheses may hold spaces; the parent is the second field after it.
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def memory(pid: int) -> int:
    """Bytes of memory that the family of `pid` holds, a page that several of them share counted once (PSS)."""
    return sum(_share(member) for member in family(pid))


def _share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
