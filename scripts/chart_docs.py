"""What of the chart is made from something else: the tables of its README, from the comments of values.yaml, and the
names of settings in its schema, from the settings. `python -m scripts.chart_docs` writes both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from service.settings import variables

CHART = Path(__file__).parents[1] / "charts" / "tailrace"
README = CHART / "README.md"
SCHEMA = CHART / "values.schema.json"
MARK = "<!-- values -->"
"""The values stand in README between two of these; the rest of it is written by hand."""


@dataclass(frozen=True)
class Value:
    """A value with the comment above it: its dotted name, what it means, and its default where it is no group."""

    name: str
    meaning: str
    default: str | None


@dataclass(frozen=True)
class Section:
    """What stands between two `## Title` lines of values.yaml."""

    title: str
    values: tuple[Value, ...]


def sections(text: str) -> Iterator[Section]:
    """The documented values of values.yaml, in its order."""
    parsed = yaml.safe_load(text)
    _, *parts = re.split(r"(?m)^## (.+)\n", text)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        yield Section(title, tuple(_values(body, parsed)))


def undocumented(text: str) -> list[str]:
    """Values without a comment: they belong to a documented value, or were forgotten."""
    known = {value.name for section in sections(text) for value in section.values}

    def walk(node: object, path: tuple[str, ...]) -> Iterator[str]:
        name = ".".join(path)
        if path and name not in known:
            yield name
        elif isinstance(node, dict) and any(other.startswith(f"{name}.") for other in known if path):
            for key, below in node.items():
                yield from walk(below, (*path, key))
        elif not path and isinstance(node, dict):
            for key, below in node.items():
                yield from walk(below, (key,))

    return list(walk(yaml.safe_load(text), ()))


def _values(body: str, parsed: object) -> Iterator[Value]:
    comment: list[str] = []
    path: list[str] = []
    found: list[tuple[str, str]] = []
    for line in body.splitlines():
        key = re.match(r"( *)([A-Za-z]\w*):", line)
        if line.strip().startswith("# "):
            comment.append(line.strip().removeprefix("# "))
        elif key:
            path[len(key[1]) // 2 :] = [key[2]]
            if comment:
                found.append((".".join(path), " ".join(comment)))
            comment = []
        else:
            comment = []
    names = [name for name, _ in found]
    for name, meaning in found:
        group = any(other.startswith(f"{name}.") for other in names)
        yield Value(name, meaning, None if group else _default(parsed, name))


def _default(parsed: object, name: str) -> str:
    for key in name.split("."):
        assert isinstance(parsed, dict)
        parsed = parsed[key]
    return json.dumps(parsed)


def table(section: Section) -> str:
    """A section as Markdown."""
    rows = [
        f"| `{v.name}` | {'' if v.default is None else f'`{v.default}`'} | {v.meaning.replace('|', chr(92) + '|')} |"
        for v in section.values
    ]
    return "\n".join([f"### {section.title}\n", "| value | default | meaning |", "|---|---|---|", *rows, ""])


def readme(written: str, values: str) -> str:
    """README with its tables rewritten."""
    before, _, after = written.split(MARK)
    return "\n".join([before + MARK, *(table(section) for section in sections(values)), MARK + after])


def schema(written: str) -> str:
    """The schema with the names of the settings rewritten."""
    names = ",\n".join(f'        "{name}"' for name in sorted(variables()))
    start = written.index('"enum": [', written.index('"setting": {'))
    return f'{written[:start]}"enum": [\n{names}\n      {written[written.index("]", start) :]}'


def main() -> None:
    """Write both."""
    README.write_text(readme(README.read_text(), (CHART / "values.yaml").read_text()))
    SCHEMA.write_text(schema(SCHEMA.read_text()))


if __name__ == "__main__":
    main()
