"""Paths into JSON: `lax $.a['b'][0]`, constant, with names, positions and [*]."""

from __future__ import annotations

import re
from typing import NamedTuple

from service.sql.errors import SqlError

_STEP = re.compile(
    r"\.(?P<name>[A-Za-z_$][\w$-]*)|\[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]|\[\s*\"(?P<double>(?:[^\"\\]|\\.)*)\"\s*\]"
    r"|\[\s*(?P<position>\d+)\s*\]|(?P<all>\[\s*\*\s*\])"
)


class Path(NamedTuple):
    """`lax`: what is missing is empty; otherwise it is an error. `array` is the path up to the first [*], if there is,
    which makes the path stand for a list of values."""

    lax: bool
    duckdb: str
    array: str = ""


def read_path(text: str) -> Path:
    """Return the path that `text` writes; without a mode it is strict. Raises SqlError for what DuckDB cannot
    follow."""
    mode, _, rest = text.strip().partition(" ")
    lax = mode.lower() == "lax"
    body = rest.strip() if mode.lower() in ("lax", "strict") else text.strip()
    if not body.startswith("$"):
        raise _unreadable(text)
    position, steps, array = 1, "$", ""
    while position < len(body):
        found = _STEP.match(body, position)
        if found is None:
            raise _unreadable(text)
        position = found.end()
        if found["all"]:
            steps, array = steps + "[*]", array or steps
        elif found["position"] is not None:
            steps += f"[{found['position']}]"
        else:
            name = next(n for n in (found["name"], found["single"], found["double"]) if n is not None)
            name = re.sub(r"\\(.)", r"\1", name)
            if '"' in name:
                raise _unreadable(text)
            steps += f'."{name}"'
    return Path(lax, steps, array)


def _unreadable(text: str) -> SqlError:
    return SqlError(
        f"the JSON path '{text}' is not supported",
        detail="a path is made of .name, ['name'], [0] and [*], after lax or strict and $",
        hint="filters, ranges and .. are not supported",
    )
