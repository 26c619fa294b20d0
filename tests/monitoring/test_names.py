"""Dashboards, alerts, the runbook and the code speak of the same metrics."""

from __future__ import annotations

import json
import re

import pytest

from service.observability.metrics import KNOWN, PREFIX
from tests.monitoring.rules_file import ALERTS, DASHBOARDS, RUNBOOK, metrics

READ = [ALERTS, RUNBOOK, *sorted(DASHBOARDS.glob("*.json"))]

NOT_OURS = {"up", "ALERTS", "process_cpu_seconds_total", "process_start_time_seconds"}
"""What Prometheus makes, and what every process tells of itself."""

OF_THE_TARGET = {"namespace", "job"}
"""Labels that Prometheus adds to all that it reads."""

OF_AN_ALERT = {"alertname", "severity"}


def exposed() -> dict[str, set[str]]:
    """Every name of a sample, with its labels."""
    names: dict[str, set[str]] = {}
    for name, known in KNOWN.items():
        parts = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}.get(known.type, ("",))
        for part in parts:
            names[PREFIX + name + part] = {*known.labels, *(["le"] if part == "_bucket" else [])}
    return names


def used(*paths):
    """The metrics that these files name."""
    return {name for path in paths for name in metrics(path.read_text())} - NOT_OURS


@pytest.mark.parametrize("path", READ, ids=lambda path: path.name)
def test_every_metric_that_is_named_exists(path):
    assert used(path) - set(exposed()) == set()


def test_every_metric_is_shown_or_watched():
    shown = used(ALERTS, *DASHBOARDS.glob("*.json"))
    families = {PREFIX + name for name in KNOWN}
    unused = {f for f in families if not any(s == f or s.startswith(f + "_") for s in shown)}
    assert unused == set()


def test_the_runbook_names_panels_that_there_are():
    panels = {panel["title"] for path in DASHBOARDS.glob("*.json") for panel in json.loads(path.read_text())["panels"]}
    of_kubernetes = {"Pending", "OOMKilled"}
    looks = re.findall(r"\*\*Look at\.\*\*(.*?)\*\*Do\.\*\*", RUNBOOK.read_text(), re.DOTALL)
    named = {re.sub(r"\s+", " ", name) for look in looks for name in re.findall(r"\*([^*]+)\*", look)}
    assert len(named) > len(of_kubernetes)
    assert named - panels == of_kubernetes


@pytest.mark.parametrize("path", [ALERTS, *sorted(DASHBOARDS.glob("*.json"))], ids=lambda path: path.name)
def test_a_metric_is_asked_for_labels_that_it_has(path):
    known = exposed()
    text = path.read_text().replace('\\"', '"')
    for name, labels in re.findall(r"\b(tailrace_\w+)\{([^}]*)\}", text):
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels)) - OF_THE_TARGET
        assert asked <= known[name], f"{name}{{{labels}}}"
    grouped = {label for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for label in group.split(", ") if label}
    assert grouped
    assert grouped <= OF_THE_TARGET | OF_AN_ALERT | {label for labels in known.values() for label in labels}
