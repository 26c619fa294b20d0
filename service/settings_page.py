"""The page of settings, made from the settings themselves: `python -m service.settings_page`."""

from __future__ import annotations

from service.settings import ELSEWHERE, variables

_HEAD = """# Settings

Every setting of the service is an environment variable.

- Durations are `500ms`, `30s`, `5m`, `1h`, `7d`; a bare number is milliseconds.
- An unknown variable that starts with `TAILRACE_` is refused, with the most similar name.
- Any of them may be a file of that name in the folder `TAILRACE_SECRETS_DIR`, for example a password. A variable
  overrides a file.
- The options of a table (`'properties.*'`) override the settings of Kafka. If a table has any security option
  (`properties.security.*`, `sasl.*`, `ssl.*`), none of the security settings here apply to it.

`tailrace run --settings` prints the same list. This page is made by `python -m service.settings_page`.
"""

_GROUPS = {
    "": "General",
    "KAFKA": "Kafka",
    "SPARK": "Spark",
    "BATCH": "Batches",
    "TOPICS": "Topics",
    "HTTP": "HTTP",
    "RETRY": "Failures",
}

_ELSEWHERE = """## Set-up and tests

Not settings of the service: `make` and the tests read them.

| variable | meaning |
|---|---|
"""


def markdown() -> str:
    """Return the whole page."""
    rows: dict[str, list[str]] = {group: [] for group in _GROUPS}
    for name, (default, meaning) in variables().items():
        group = name.removeprefix("TAILRACE_").partition("__")[0] if "__" in name else ""
        rows[group].append(f"| `{name}` | {f'`{default}`' if default else ''} | {meaning} |")
    tables = [
        "\n".join([f"## {_GROUPS[group]}\n", "| variable | default | meaning |", "|---|---|---|", *lines, ""])
        for group, lines in rows.items()
    ]
    elsewhere = _ELSEWHERE + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in ELSEWHERE.items())
    return "\n".join([_HEAD, *tables, elsewhere])


if __name__ == "__main__":
    print(markdown(), end="")
