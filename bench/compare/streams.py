"""The small streams with queries over them, and the changes that Flink was seen to emit."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from bench.flink.launch import run_java

CASES = Path(__file__).with_name("changelogs.toml")
RESULTS = Path(__file__).parents[2] / "tests" / "sql" / "flink_changelogs.json"

Case = dict[str, Any]
ARRIVAL = re.compile(r"(\w+) (\+I|-U|\+U|-D) (\[.*\])")


def cases() -> list[Case]:
    """Every case: name, tables (columns, and where they have them watermark, key and mode), arrivals and query."""
    found: list[Case] = tomllib.loads(CASES.read_text())["case"]
    for case in found:
        case["arrivals"] = [_arrival(line) for line in case["arrivals"].splitlines()]
    return found


def _arrival(line: str) -> list[Any]:
    match = ARRIVAL.fullmatch(line)
    if match is None:
        raise ValueError(f"not an arrival: {line}")
    return [match[1], match[2], json.loads(match[3])]


def ask_flink(asked_for: list[Case] | None = None) -> list[Case]:
    """Play cases, by default those of the file, to Flink.

    Added to each are the `columns` and `changes` of the answer and the `rows` that they leave, or why it was `refused`.
    """
    if asked_for == []:
        return []
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "cases.json"), Path(folder, "results.json")
        asked.write_text(json.dumps(cases() if asked_for is None else asked_for))
        run_java("Replay", str(asked), str(answered))
        results: list[Case] = json.loads(answered.read_text())
    for result in results:
        if "changes" in result:
            result["rows"] = applied(result["changes"], result.get("upserted"))
    return results


def applied(changes: list[list[Any]], key: list[int] | None = None) -> list[list[Any]]:
    """The rows that are left when `changes` are applied one after another, in a stable order. With a `key`, a row takes
    the place of the one that has its values in these columns: Flink leaves out what an update replaces where it can."""
    if key is not None:
        there = {json.dumps([values[k] for k in key]): (kind, values) for kind, values in changes}
        return sorted((values for kind, values in there.values() if kind in ("+I", "+U")), key=json.dumps)
    rows: Counter[str] = Counter()
    for kind, values in changes:
        rows[json.dumps(values)] += 1 if kind in ("+I", "+U") else -1
    if any(count < 0 for count in rows.values()):
        raise ValueError(f"retracted and never emitted: {rows}")
    return [json.loads(row) for row in sorted(rows.elements())]


def record() -> None:
    """Write what Flink emitted where the tests read it."""
    RESULTS.write_text("[\n" + ",\n".join(_text(result) for result in ask_flink()) + "\n]\n")


def _text(case: Case) -> str:
    def value(field: Any) -> str:
        if isinstance(field, list) and field:
            return "[\n      " + ",\n      ".join(json.dumps(item, ensure_ascii=False) for item in field) + "\n    ]"
        return json.dumps(field, ensure_ascii=False)

    fields = (f'    "{name}": {value(field)}' for name, field in case.items())
    return "  {\n" + ",\n".join(fields) + "\n  }"
