"""The meaning of a 'topic-pattern': a Java regular expression that must match the whole name of a topic.

Names of topics are ASCII without line ends, so what Java and Python tell apart by other characters is the same here.
What the two would read differently is refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

_CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("Lower", "javaLowerCase", "IsLowercase", "Ll", "IsLl"), "a-z"),
    **dict.fromkeys(("Upper", "javaUpperCase", "IsUppercase", "Lu", "IsLu"), "A-Z"),
    **dict.fromkeys(("Alpha", "IsAlphabetic", "L", "IsL"), "a-zA-Z"),
    **dict.fromkeys(("Digit", "IsDigit", "N", "IsN", "Nd", "IsNd"), "0-9"),
    "Alnum": "a-zA-Z0-9",
    "XDigit": "0-9a-fA-F",
    "ASCII": r"\x00-\x7f",
}
"""The classes of Java's \\p{...} that tell characters of names apart, as parts of a class of Python's."""

_TOKEN = re.compile(
    r"""
      (?P<quoted>\\Q(?P<text>.*?)(?:\\E|\Z))
    | (?P<property>\\(?P<sign>[pP])(?:\{(?P<long>\w+)\}|(?P<short>\w)))
    | (?P<named>\\k<(?P<back>[a-zA-Z][a-zA-Z0-9]*)>)
    | (?P<code>\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4})
    | (?P<set>\\[dDwWsS])
    | (?P<bound>\\[bBAzZ])
    | (?P<group>\\[1-9](?![0-9]))
    | (?P<control>\\[tnrf])
    | (?P<escaped>\\[^a-zA-Z0-9])
    | (?P<unknown>\\.?)
    | (?P<opening>\((?:\?(?:<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>|[:=!>]|<[=!]|i:|i\)|(?P<strange>))|(?!\?)))
    | (?P<times>\{\d+(?:,\d*)?\})
    | (?P<brace>\{)
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def topic_pattern(text: str) -> re.Pattern[str]:
    """Return `text`, a regular expression of Java's, as one of Python's, for `fullmatch`.

    Raises ValueError with what cannot be read.

    >>> pattern = topic_pattern(r"orders(\\.\\p{Lower}+)?")
    >>> [name for name in ("orders", "orders.eu", "my-orders") if pattern.fullmatch(name)]
    ['orders', 'orders.eu']
    """
    parts: list[str] = []
    at, begun = 0, -1  # where a class of characters has begun
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None
        part = found[0]
        if begun >= 0:
            # Neither a group nor a repetition begins within a class.
            part = part[0] if found.lastgroup in ("opening", "times", "brace") else part
            nested = part == "[" or text.startswith("&&", at)
            if nested or (part == "]" and text[begun + 1 : at] in ("", "^")):
                raise ValueError(f"not '{text[begun : at + 1]}', a class within a class, && or a ] at its start")
            parts.append(_in_class(found, part))
            begun = -1 if part == "]" else begun
        else:
            parts.append(_outside(found))
            begun = at if part == "[" else begun
        at += len(part)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile("".join(parts), re.ASCII)
    except (re.error, FutureWarning) as error:
        raise ValueError(str(error)) from error


def _in_class(found: re.Match[str], part: str) -> str:
    match found.lastgroup:
        case "quoted" | "escaped" | "code" | "set" | "control":
            return _outside(found)
        case "property" if found["sign"] == "p":
            return _class(found)
        case "plain" | "opening" | "times" | "brace":
            return part if part in "^-]" else re.escape(part)
    raise ValueError(f"not '{found[0]}' within [ and ]")


def _outside(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "quoted":
            return re.escape(found["text"])
        case "escaped":
            return re.escape(found[0][1:])
        case "property":
            return f"[{'' if found['sign'] == 'p' else '^'}{_class(found)}]"
        case "named":
            return f"(?P={found['back']})"
        case "bound":
            return r"\Z" if found[0] == r"\z" else found[0]
        case "opening" if found["name"] is not None:
            return f"(?P<{found['name']}>"
        case "opening" if found["strange"] is None:
            return found[0]
        case "code" | "set" | "control" | "group" | "times" | "plain":
            return found[0]
    raise ValueError(f"not '{found[0]}'")


def _class(found: re.Match[str]) -> str:
    name = found["long"] or found["short"]
    if name not in _CLASSES:
        raise ValueError(f"not '{found[0]}'")
    return _CLASSES[name]
