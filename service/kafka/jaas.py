"""The text of `sasl.jaas.config`: one login module and its options, secrets among them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from service.kafka.errors import KafkaConfigError

_ENTRY = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*);\s*", re.S | re.I)
_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")


def read(text: str) -> tuple[str, dict[str, str]]:
    """Return the login module and its options."""
    entry = _ENTRY.fullmatch(text)
    options: dict[str, str] = {}
    rest = entry[2] if entry else ""
    place = 0
    while option := _OPTION.match(rest, place):
        value = option[2]
        quoted = value[0] in "\"'"
        options[option[1]] = re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value
        place = option.end()
    if entry is None or rest[place:].strip():
        raise KafkaConfigError(
            "sasl.jaas.config cannot be read",
            "it is not shown, because it holds secrets",
            'write it as: LoginModule required username="..." password="...";',
            option="sasl.jaas.config",
        )
    return entry[1], options


def write(module: str, options: Mapping[str, str]) -> str:
    """Return the text that `read` reads back."""
    written = " ".join(f'{name}="{_escaped(value)}"' for name, value in options.items())
    return f"{module} required {written};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
