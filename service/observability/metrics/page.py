"""The page of metrics, made from the catalogue: `python -m service.observability.metrics.page`."""

from __future__ import annotations

from collections.abc import Mapping

from service.observability.metrics import catalogue
from service.observability.metrics.catalogue import PREFIX, MetricSpec

_HEAD = """# Metrics

The service answers `GET /metrics` in Prometheus' text format from its start on. Names, units and labels do not change
between versions. `query` is the name of the job (`pipeline.name`, or that of the table it writes), `operator` a name
that `tailrace explain` lists under the levels. Counters start at 0 with the process and only grow; a restarted query
continues its counters. In addition there are `process_*` of the driver's Python process.

The chart has two Grafana dashboards and alerts that use them; the [runbook](runbook.md) has an entry for each alert.
This page is made by `python -m service.observability.metrics.page`.
"""

_GROUPS: Mapping[str, Mapping[str, MetricSpec]] = {
    "Service and queries": catalogue.SERVICE,
    "Batches": catalogue.BATCHES,
    "Rows": catalogue.ROWS,
    "Kafka": catalogue.KAFKA,
    "Event time": catalogue.TIME,
    "State": catalogue.STATE,
    "Processes": catalogue.PROCESSES,
}

_TAIL = """
## Lag for other tools

After each batch the service commits its offsets to Kafka, to the consumer group of `properties.group.id`, or else
`tailrace-` and the name of the job. Tools that monitor consumer groups can use them. They are for information only: the
position of a query is in its checkpoint.
"""


def markdown() -> str:
    """Return the whole page."""
    return _HEAD + "".join(map(_table, _GROUPS)) + _TAIL


def _table(group: str) -> str:
    lines = [f"\n## {group}\n", "| metric | type | labels | |", "|---|---|---|---|"]
    for name, known in _GROUPS[group].items():
        labels = ", ".join(f"`{label}`" for label in known.labels)
        lines.append(f"| `{PREFIX}{name}` | {known.type} | {labels} | {known.help} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
