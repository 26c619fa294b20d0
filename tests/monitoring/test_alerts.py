"""Every alert fires when it should and keeps quiet otherwise, and the runbook says what to do about it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.chart.rendering import LOCAL, find, render
from tests.monitoring.programs import program
from tests.monitoring.rules_file import ALERTS, CASES, RUNBOOK, alerts

EXPECTED = {
    "TailraceDown",
    "TailraceQueryNotRunning",
    "TailraceStalled",
    "TailraceFallingBehind",
    "TailraceLagGrowing",
    "TailraceWatermarkStuck",
    "TailraceLateRecords",
    "TailraceDeadLetters",
    "TailraceStateGrowing",
    "TailraceExecutorsMissing",
}


def promtool(*arguments: str) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def case_file(alert: str) -> str:
    """TailraceLagGrowing is tested in lag_growing.yaml."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", alert.removeprefix("Tailrace")).lower() + ".yaml"


def test_the_alerts_are_those_that_were_asked_for():
    assert sorted(alerts()) == sorted(EXPECTED)


def test_prometheus_takes_the_rules():
    promtool("check", "rules", str(ALERTS))


@pytest.mark.parametrize("alert", sorted(EXPECTED))
def test_an_alert_fires_when_it_should_and_only_then(alert: str):
    promtool("test", "rules", str(CASES / case_file(alert)))


@pytest.mark.parametrize("alert", sorted(EXPECTED))
def test_an_alert_of_a_release_fires_for_the_pod_of_that_release(alert: str, tmp_path: Path):
    text = (CASES / case_file(alert)).read_text()
    ours = text.replace('{namespace="shop"', '{namespace="shop", pod="tailrace-0"')
    assert ours.count("pod=") == text.count("- series:")
    made = find(render({**LOCAL, "prometheusRule": {"enabled": True}}, namespace="shop"), "PrometheusRule")
    (tmp_path / "rules.yaml").write_text(json.dumps(made["spec"]))
    (tmp_path / "cases.yaml").write_text(re.sub(r"rule_files: .*", "rule_files: [rules.yaml]", ours))
    promtool("test", "rules", str(tmp_path / "cases.yaml"))


@pytest.mark.parametrize("alert", sorted(EXPECTED))
def test_an_alert_is_tested_both_ways(alert: str):
    text = (CASES / case_file(alert)).read_text()
    cases = re.split(r"\n      - ", text)
    mine = [case for case in cases if f"alertname: {alert}" in case]
    assert {"exp_alerts" in case for case in mine} == {True, False}


def test_every_case_file_belongs_to_an_alert():
    assert sorted(path.name for path in CASES.iterdir()) == sorted(map(case_file, EXPECTED))


def test_the_runbook_has_an_entry_for_each_alert_and_no_other():
    headings = re.findall(r"^## (Tailrace\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(EXPECTED)


@pytest.mark.parametrize("alert", sorted(EXPECTED))
def test_an_alert_says_how_bad_it_is_what_is_wrong_and_where_to_read_on(alert: str):
    body = ALERTS.read_text().partition(f"- alert: {alert}\n")[2].partition("- alert:")[0]
    assert re.search(r"severity: (critical|warning)\n", body)
    assert re.search(r"summary: \S", body)
    assert re.search(r"description: >-\n\s+\S", body)
    assert f"runbook_url: docs/runbook.md#{alert.lower()}\n" in body


@pytest.mark.parametrize("alert", sorted(EXPECTED))
def test_an_entry_of_the_runbook_says_what_it_means_where_to_look_and_what_to_do(alert: str):
    entry = RUNBOOK.read_text().partition(f"## {alert}\n")[2].partition("\n## ")[0]
    for part in ("**What it means.**", "**Look at.**", "**Do.**"):
        assert part in entry
