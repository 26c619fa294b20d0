"""The recorded streams of flink_changelogs.json as pipelines of ours."""

from __future__ import annotations

import json
from typing import Any

from bench.compare.play import Stream
from bench.compare.streams import RESULTS, Case

_NOTES = (" NOT NULL", " *ROWTIME*", " *PROCTIME*")
_KAFKA = "'connector' = 'kafka', 'topic' = '{0}', 'scan.startup.mode' = 'earliest-offset'"
_FORMATS = {
    "append": _KAFKA + ", 'format' = 'json'",
    "retract": _KAFKA + ", 'format' = 'changelog-json'",
    "lookup": "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{0}', 'table-name' = '{0}'",
    "upsert": "'connector' = 'upsert-kafka', 'topic' = '{0}', 'key.format' = 'json', 'value.format' = 'json'",
}


def recorded() -> list[Case]:
    """All that Flink answered; the refused ones too."""
    cases: list[Case] = json.loads(RESULTS.read_text())
    return cases


def stream_of(case: Case) -> Stream:
    """The pipeline that asks the same of the same rows; its sink is called results."""
    tables: dict[str, Any] = case["tables"]
    statements = [*(_table(name, table) for name, table in tables.items()), *case.get("views", ())]
    statements.append(f"CREATE TABLE results ({', '.join(map(_column, case['columns']))}) WITH ({_sink()})")
    statements.append(f"INSERT INTO results {case['query']}")
    return Stream(
        name=case["name"],
        text="".join(f"{statement};\n" for statement in statements),
        heads={name: tuple(table["columns"]) for name, table in tables.items()},
        arrivals=tuple((owner, kind, values) for owner, kind, values in case["arrivals"]),
        append_only=frozenset(name for name, table in tables.items() if table.get("mode", "append") == "append"),
    )


def _table(name: str, table: dict[str, Any]) -> str:
    parts = [f"`{column}` {type_}" for column, type_ in table["columns"].items()]
    if "watermark" in table:
        parts.append(f"WATERMARK FOR `{table['watermark'][0]}` AS {table['watermark'][1]}")
    if "key" in table:
        parts.append(f"PRIMARY KEY ({', '.join(table['key'])}) NOT ENFORCED")
    return f"CREATE TABLE {name} ({', '.join(parts)}) WITH ({_FORMATS[table.get('mode', 'append')].format(name)})"


def _column(described: str) -> str:
    name, _, type_ = described.partition(" ")
    for note in _NOTES:
        type_ = type_.replace(note, "")
    return f"`{name}` {type_}"


def _sink() -> str:
    return "'connector' = 'kafka', 'topic' = 'results', 'format' = 'changelog-json'"
