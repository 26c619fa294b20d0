"""Monitors, alert rules, dashboards and network policies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, KUBERNETES, LOCAL, driver, find, kinds, merged, render

ALERTS = [
    rule
    for path in sorted(CHART.glob("alerts/*.yaml"))
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARDS = sorted(CHART.glob("dashboards/*.json"))
METRIC = re.compile(r"\btailrace_[a-z0-9_]+")


def rules(changes: Mapping[str, Any], **release: str) -> list[dict[str, Any]]:
    made = render(merged(LOCAL, {"prometheusRule": {"enabled": True, **changes}}), **release)
    return [rule for group in find(made, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]


@pytest.mark.parametrize(
    ("kind", "value", "endpoints"),
    [("ServiceMonitor", "serviceMonitor", "endpoints"), ("PodMonitor", "podMonitor", "podMetricsEndpoints")],
)
def test_a_monitor_is_found_by_its_labels_and_finds_the_driver(kind: str, value: str, endpoints: str):
    changes = {value: {"enabled": True, "interval": "15s", "additionalLabels": {"release": "prometheus"}}}
    objects = render(merged(LOCAL, changes))
    monitor = find(objects, kind)
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["streams"]}
    assert monitor["spec"][endpoints] == [{"port": "http", "path": "/metrics", "interval": "15s"}]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    services = [o for o in objects if o["kind"] == "Service" and wanted <= o["metadata"]["labels"].items()]
    assert [service["metadata"]["name"] for service in services] == ["tailrace"]  # and not the headless one, too
    assert wanted <= driver(objects)["metadata"]["labels"].items()


def test_nothing_that_a_cluster_may_not_know_is_made_unasked():
    assert not {"ServiceMonitor", "PodMonitor", "PrometheusRule"} & kinds(render(KUBERNETES))


def test_a_scraper_that_goes_by_annotations_finds_the_metrics():
    objects = render(merged(LOCAL, {"metrics": {"scrapeAnnotations": True}, "service": {"targetPort": 9000}}))
    annotations = driver(objects)["metadata"]["annotations"]
    found = {name: annotations[f"prometheus.io/{name}"] for name in ("scrape", "port", "path")}
    assert found == {"scrape": "true", "port": "9000", "path": "/metrics"}


def test_every_alert_is_made_as_it_is_written():
    made = rules({})
    assert [rule["alert"] for rule in made] == [rule["alert"] for rule in ALERTS]
    for rule, written in zip(made, ALERTS, strict=True):
        assert rule | {"expr": ""} == written | {"expr": ""}


def test_an_alert_can_be_left_out_labelled_and_explained_elsewhere():
    first = ALERTS[0]["alert"]
    changes = {"disabled": [first], "additionalRuleLabels": {"team": "a"}, "runbookUrl": "https://wiki.example.com/"}
    made = rules(changes)
    assert [rule["alert"] for rule in made] == [rule["alert"] for rule in ALERTS if rule["alert"] != first]
    for rule in made:
        assert rule["labels"]["team"] == "a"
        assert rule["labels"]["severity"]
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example.com/{rule['alert'].lower()}"


def test_the_rules_of_a_release_ask_for_its_own_metrics():
    scope = '{namespace="streams",pod="spending-tailrace-0"'
    for rule, written in zip(rules({}, name="spending"), ALERTS, strict=True):
        assert len(METRIC.findall(written["expr"])) > 0
        assert [m.end() for m in METRIC.finditer(rule["expr"]) if not rule["expr"][m.end() :].startswith(scope)] == []
        without = re.sub(re.escape(scope) + r",?", "{", rule["expr"])
        assert re.sub(r"\{\}", "", without) == re.sub(r"\{\}", "", written["expr"])


def test_a_dashboard_is_found_by_its_label_and_unchanged():
    changes = {"dashboards": {"enabled": True, "annotations": {"grafana_folder": "Streams"}, "namespace": "grafana"}}
    objects = render(merged(LOCAL, changes))
    assert DASHBOARDS
    for path in DASHBOARDS:
        found = find(objects, "ConfigMap", f"tailrace-dashboard-{path.stem}")
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert found["metadata"]["annotations"] == {"grafana_folder": "Streams"}
        assert found["metadata"]["namespace"] == "grafana"
        assert json.loads(found["data"][path.name]) == json.loads(path.read_text())


def test_a_closed_network_lets_out_what_the_pods_need():
    changes = {
        "kafka": {"bootstrapServers": "a:9092,b:9092,c:9093"},
        "networkPolicy": {"enabled": True, "egress": {"enabled": True, "extra": [{"ports": [{"port": 443}]}]}},
    }
    objects = render(merged(KUBERNETES, changes))
    out = {
        name: [
            port["port"] for rule in find(objects, "NetworkPolicy", name)["spec"]["egress"] for port in rule["ports"]
        ]
        for name in ("tailrace-driver", "tailrace-executor")
    }
    assert out == {
        "tailrace-driver": [53, 53, 9092, 9093, 443, 443, 6443, 7079],
        "tailrace-executor": [53, 53, 9092, 9093, 443, 7078, 7079],
    }


def test_a_policy_that_names_who_may_ask_lets_the_test_of_the_release_in():
    friends = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    objects = render(merged(LOCAL, {"networkPolicy": {"enabled": True, "from": friends}}))
    policy = find(objects, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    friend, test = policy["ingress"][0]["from"]
    assert [friend] == friends
    assert test["podSelector"]["matchLabels"].items() <= find(objects, "Pod")["metadata"]["labels"].items()
