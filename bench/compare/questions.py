"""The questions about expressions, and Flink's recorded answers to them."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.flink.launch import run_java

QUESTIONS = Path(__file__).with_name("expressions.toml")
ANSWERS = Path(__file__).parents[2] / "tests" / "sql" / "flink_expressions.json"

Group = dict[str, Any]


def questions() -> list[Group]:
    """Every group of questions: name, zone, columns, rows and expressions."""
    groups: list[Group] = tomllib.loads(QUESTIONS.read_text())["group"]
    for group in groups:
        group["rows"] = [json.loads(row) for row in group["rows"]]
        group["expressions"] = group["expressions"].splitlines()
        group.setdefault("zone", "UTC")
    return groups


def ask_flink() -> list[Group]:
    """Put every question to Flink."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "questions.json"), Path(folder, "answers.json")
        asked.write_text(json.dumps(questions()))
        run_java("Evaluate", str(asked), str(answered))
        answers: list[Group] = json.loads(answered.read_text())
    return answers


def recorded() -> list[Group]:
    """Flink's answers when they were recorded."""
    answers: list[Group] = json.loads(ANSWERS.read_text())
    return answers


def record() -> None:
    """Write Flink's answers where the tests of the expressions read them: one line an expression."""
    ANSWERS.write_text("[\n" + ",\n".join(_lines(group) for group in ask_flink()) + "\n]\n")


def _lines(group: Group) -> str:
    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def block(items: Iterator[str]) -> str:
        return "[\n      " + ",\n      ".join(items) + "\n    ]"

    rows = block(text(row) for row in group["rows"])
    expressions = block(text(expression) for expression in group["expressions"])
    return (
        f'  {{\n    "name": {text(group["name"])},\n    "zone": {text(group["zone"])},\n'
        f'    "columns": {text(group["columns"])},\n    "rows": {rows},\n    "expressions": {expressions}\n  }}'
    )
