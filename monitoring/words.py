"""Words and expressions that both dashboards use."""

from __future__ import annotations

from monitoring.panels import BLUE, GREEN, RED

STATES = {0: ("not running", RED), 1: ("running", GREEN), 2: ("finished", BLUE)}


def state(keys: str) -> str:
    """The state of each query as a number of STATES."""
    return f"max by ({keys}) (tailrace_query_active{{%Q}}) + 2 * max by ({keys}) (tailrace_query_finished{{%Q}})"


def mean(metric: str, keys: str = "") -> str:
    """The mean of what a histogram or summary observed."""
    by = f"sum by ({keys}) " if keys else "sum"
    return f"{by}(rate({metric}_sum{{%Q}}[$__rate_interval])) / {by}(rate({metric}_count{{%Q}}[$__rate_interval]))"


def rate(metric: str, keys: str = "") -> str:
    """How much a counter grows each second."""
    return f"sum{f' by ({keys}) ' if keys else ''}(rate({metric}{{%Q}}[$__rate_interval]))"


def grown(metric: str, keys: str, window: str = "$__rate_interval") -> str:
    """By how much a counter has grown."""
    return f"sum by ({keys}) (increase({metric}{{%Q}}[{window}]))"


def backlog(keys: str = "") -> str:
    """How long it takes to read what waits in Kafka, at the present pace."""
    by = f"sum by ({keys}) " if keys else "sum"
    return f"{by}(tailrace_kafka_consumer_lag{{%Q}}) / ({rate('tailrace_input_records_total', keys)} > 0)"
