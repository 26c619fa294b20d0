"""The known differences, each with its reason; an entry that no longer differs is reported as well."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

LIST = Path(__file__).with_name("known-differences.toml")


@dataclass(slots=True)
class Verdict:
    """What the comparison found, case by case: equal, different as listed, or different and not listed."""

    known: dict[str, str] = field(default_factory=dict)
    equal: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, difference: str) -> None:
        """Count a case; `difference` is empty where both sides say the same."""
        if not difference:
            self.equal.append(name)
        elif name in self.known:
            self.listed.append(name)
        else:
            self.unknown[name] = difference

    @property
    def count(self) -> int:
        """The number of cases that were compared."""
        return len(self.equal) + len(self.listed) + len(self.unknown)

    @property
    def stale(self) -> list[str]:
        """Cases that are listed and do not differ."""
        return [name for name in self.equal if name in self.known]

    def text(self) -> str:
        """A readable account, the unknown differences last."""
        lines = [f"listed   {name}: {self.known[name]}" for name in self.listed]
        lines += [f"listed and equal now   {name}" for name in self.stale]
        lines += [f"DIFFERS  {name}\n{difference}" for name, difference in self.unknown.items()]
        counts = f"{len(self.equal)} equal, {len(self.listed)} differ as listed, {len(self.unknown)} differ"
        return "\n".join([*lines, counts])


def verdict() -> Verdict:
    """An empty verdict that knows the list."""
    entries = tomllib.loads(LIST.read_text())["difference"]
    return Verdict({name: entry["reason"] for entry in entries for name in entry["cases"]})


def rows_difference(flink: list[tuple[str, ...]], ours: list[tuple[str, ...]]) -> str:
    """The rows that only one side has; empty where both have the same ones, as often."""
    left, right = list(flink), list(ours)
    for row in flink:
        if row in right:
            right.remove(row)
            left.remove(row)
    lines = [f"  only Flink:    {', '.join(row)}" for row in left] + [
        f"  only Tailrace: {', '.join(row)}" for row in right
    ]
    return "\n".join(lines)
