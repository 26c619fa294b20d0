"""A real Prometheus watches a service under load and with faults: what dashboards and alerts ask has an answer."""

from __future__ import annotations

import json
import math
import subprocess
from typing import NamedTuple

import pytest

from service.formats.dead_letters import REASONS
from service.observability.metrics import KNOWN, PREFIX
from service.observability.metrics.catalogue import STORE_OPERATIONS
from service.observability.metrics.series import KINDS, OUTCOMES
from service.plan.lowering.lower import compile_job
from service.sql.pipeline import read
from tests.monitoring.live import RATE_INTERVAL, Live
from tests.monitoring.orders import QUERY, Topics, pipeline
from tests.monitoring.programs import program
from tests.monitoring.prometheus import JOB, NAMESPACE
from tests.monitoring.rules_file import DASHBOARDS, alerts, selectors
from tests.spark.topics import messages

pytestmark = pytest.mark.timeout(600)  # the first test waits for all that the service does

CHOSEN = {"$namespace": NAMESPACE, "$job": JOB, "$query": QUERY, "$__rate_interval": RATE_INTERVAL}

BATCH_PHASES = {"addBatch", "commitBatch", "commitOffsets", "getBatch", "latestOffset", "queryPlanning", "walCommit"}
TASK_PHASES = {"decode", "ingest_operators", "operators", "encode", "write"}


class Asked(NamedTuple):
    """A query of a panel."""

    dashboard: str
    panel: str
    query: str


def panel_queries() -> list[Asked]:
    """Every query of every panel, for the live service."""
    found = []
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                query = target["expr"]
                for variable, value in CHOSEN.items():
                    query = query.replace(variable, value)
                found.append(Asked(path.stem, panel["title"], query))
    return found


@pytest.mark.parametrize("asked", panel_queries(), ids=lambda a: f"{a.dashboard}: {a.panel}")
def test_a_panel_has_data(watched: Live, asked: Asked):
    assert "$" not in asked.query
    values = [sample.value for sample in watched.prometheus.ask(asked.query, watched.busy)]
    assert [v for v in values if math.isfinite(v)], asked.query


@pytest.mark.parametrize("alert", alerts())
def test_what_an_alert_looks_at_exists(watched: Live, alert: str):
    rule = watched.prometheus.rules()[alert]
    assert rule["health"] == "ok", rule.get("lastError")
    asked = selectors(rule["query"])
    assert asked
    for selector in asked:
        assert watched.prometheus.ask(selector, watched.busy), selector


def test_bad_records_fire_their_alert_at_once_and_the_service_is_up(watched: Live):
    firing = {s.labels["alertname"] for s in watched.prometheus.ask('ALERTS{alertstate="firing"}', watched.busy)}
    assert "TailraceDeadLetters" in firing
    assert not firing & {"TailraceDown", "TailraceStalled", "TailraceExecutorsMissing"}


def test_promtool_finds_no_fault_with_a_scrape(watched: Live):
    done = subprocess.run(
        [program("promtool"), "check", "metrics"], input=watched.scrape, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_metric_is_scraped(watched: Live):
    missing = [name for name in KNOWN if f"\n{PREFIX}{name}" not in watched.scrape.replace("_bucket{", "{")]
    assert missing == []


def test_no_counter_goes_back_when_a_batch_fails_and_the_query_is_started_again(watched: Live):
    prometheus = watched.prometheus
    assert prometheus.value("tailrace_batch_failures_total", watched.quiet) >= 1
    parts = {"counter": ("",), "histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}
    for name, known in KNOWN.items():
        for part in parts.get(known.type, ()):
            resets = prometheus.ask(f"resets({PREFIX}{name}{part}[1h])", watched.quiet)
            assert resets, name
            assert {sample.value for sample in resets} == {0}, name


def test_what_is_counted_is_what_is_in_the_topics_also_after_a_failure(watched: Live):
    def counted(metric: str, **labels: str) -> float:
        chosen = ",".join(f'{k}="{v}"' for k, v in labels.items())
        return watched.prometheus.value(f"sum({PREFIX}{metric}{{{chosen}}})", watched.quiet)

    topics = watched.topics
    assert counted("input_records_total", topic=topics.orders) == watched.fed
    assert counted("decode_errors_total") == watched.unreadable
    assert counted("dead_letter_records_total", reason="bad-json") == watched.unreadable
    assert counted("dead_letter_records_total", reason="not-computed") == watched.uncomputable
    assert len(messages(watched.bootstrap, topics.dead)) == counted("dead_letter_records_total")
    for topic in (topics.totals, topics.windows, topics.shares):
        assert len(messages(watched.bootstrap, topic)) == counted("output_records_total", topic=topic) > 0
    assert counted("late_records_total") > 0
    retracted = counted("output_changes_total", sink="totals", kind="retract")
    assert counted("output_changes_total", sink="totals", kind="insert") > retracted > 0
    assert counted("output_changes_total", sink="shares", kind="retract") == 0


def test_the_consumer_group_has_how_far_the_service_has_read(watched: Live):
    read = watched.prometheus.ask('tailrace_kafka_offset{kind="read"}', watched.quiet)
    assert watched.group == {int(sample.labels["partition"]): sample.value for sample in read}
    assert sum(sample.value for sample in watched.prometheus.ask("tailrace_kafka_consumer_lag", watched.quiet)) == 0


def test_labels_have_the_values_that_the_pipeline_and_the_catalogue_give_them(watched: Live):
    bounds = bounds_of(watched.topics)
    assert set(bounds) == {label for known in KNOWN.values() for label in known.labels} - {"version"}
    for label, allowed in bounds.items():
        assert watched.prometheus.values_of(label) <= allowed, label


def bounds_of(topics: Topics) -> dict[str, set[str]]:
    """The values that each label may have."""
    running = compile_job(read(pipeline(topics)).jobs[0], late_rows=True)
    return {
        "query": {QUERY},
        "phase": BATCH_PHASES | TASK_PHASES,
        "source": {"orders"},
        "sink": {"totals", "windows", "shares"},
        "topic": topics.all(),
        "partition": {"0", "1"},
        "kind": {*KINDS, "read", "end"},
        "operator": {operator.name for operator in running.operators},
        "level": {str(operator.level) for operator in running.operators},
        "outcome": set(OUTCOMES),
        "reason": set(REASONS),
        "executor": {"driver"},
        "process": {"driver", "jvm", "worker", "writer"},
        "area": {"heap", "nonheap"},
        "operation": set(STORE_OPERATIONS),
    }
