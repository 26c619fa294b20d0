"""The alerts of the chart, and the names of metrics in expressions."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "charts" / "tailrace" / "alerts" / "tailrace.yaml"
DASHBOARDS = ROOT / "charts" / "tailrace" / "dashboards"
CASES = Path(__file__).parent / "rules"
RUNBOOK = ROOT / "docs" / "runbook.md"

SELECTOR = re.compile(r"\b(?P<name>tailrace_\w+|up|ALERTS|process_\w+)\b(?P<labels>\{[^}]*\})?")
"""A metric in an expression. Label names and functions are no metrics: none of them is called like these."""


def alerts() -> list[str]:
    """The names of all alerts."""
    return re.findall(r"- alert: (\w+)", ALERTS.read_text())


def selectors(expression: str) -> set[str]:
    """The selectors of an expression: metric names with the labels that are asked for."""
    return {match[0] for match in SELECTOR.finditer(expression)}


def metrics(text: str) -> set[str]:
    """The names of metrics in a text."""
    return {match["name"] for match in SELECTOR.finditer(text)}
