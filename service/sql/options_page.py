"""The page of options and settings, made from the tables that read them: `python -m service.sql.options_page`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from service.sql.options.connector_options import CONNECTORS
from service.sql.options.format_options import FORMAT_OPTIONS
from service.sql.options.known import OptionSpec
from service.sql.set_keys import SETTINGS

_HEAD = """# Options and settings

Every key of `WITH (...)`, of formats and of `SET`. Names and defaults are Flink's, so that a file written for Flink
runs unchanged; names with `tailrace` in them are Tailrace's own. An unknown key is refused with a hint, never ignored.
This page is made by `python -m service.sql.options_page`.
"""


def markdown() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for kind, known in CONNECTORS.items():
        parts.append(f"## Connector `{kind}`\n\n{_table(known) if known else 'It has no options.'}\n")
    for kind, known in FORMAT_OPTIONS.items():
        parts.append(
            f"## Format `{kind}`\n\nWritten after the format's name: `'{kind}.<option>'`, or "
            f"`'key.{kind}.<option>'` and `'value.{kind}.<option>'`.\n\n{_table(known)}\n"
        )
    parts.append(f"## SET\n\n{_table(SETTINGS)}\n")
    return "\n".join(parts)


def _table(options: Mapping[str, OptionSpec]) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    lines += [_row(key, known) for key, known in _sorted(options.items())]
    return "\n".join(lines)


def _sorted(options: Iterable[tuple[str, OptionSpec]]) -> list[tuple[str, OptionSpec]]:
    """Options with a meaning, then those that are accepted without effect, then those that are refused."""
    return sorted(options, key=lambda item: (bool(item[1].ignored), bool(item[1].refused)))


def _row(key: str, known: OptionSpec) -> str:
    value = " ".join(f"`{v}`" for v in known.values) or known.kind.name
    if known.refused:
        return f"| `{key}` | | | refused: {known.refused} |"
    if known.ignored:
        return f"| `{key}` | {value} | | accepted, without effect: {known.ignored} |"
    return f"| `{key}` | {value} | {f'`{known.default}`' if known.default else ''} | {known.meaning} |"


if __name__ == "__main__":
    print(markdown(), end="")
