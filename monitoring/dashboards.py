"""Dashboards: rows of panels laid out on a page, with the variables that choose what they show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from monitoring.overview import OVERVIEW
from monitoring.panels import DATASOURCE, SERVICE, Json, Panel
from monitoring.pipeline import PIPELINE
from monitoring.rows import Row

WIDTH = 24
"""The columns of Grafana's grid."""

TAG = "tailrace"


class Dashboard(NamedTuple):
    """A page. `several` says whether it may show several queries at once."""

    title: str
    description: str
    rows: tuple[Row, ...]
    several: bool


DASHBOARDS: Mapping[str, Dashboard] = {
    "overview": Dashboard(
        "Tailrace / Overview", "Every query of every Tailrace: does it run, does it keep up.", OVERVIEW, several=True
    ),
    "pipeline": Dashboard(
        "Tailrace / Pipeline",
        "One query from Kafka to Kafka: throughput, batches, lag, event time, changes, state, errors, processes.",
        PIPELINE,
        several=False,
    ),
}
"""By file name."""


def text(dashboard: Dashboard) -> str:
    """The JSON file of a dashboard."""
    name = next(name for name, known in DASHBOARDS.items() if known == dashboard)
    return json.dumps(model(name, dashboard), indent=2, sort_keys=True) + "\n"


def model(name: str, dashboard: Dashboard) -> Json:
    """A dashboard as Grafana imports it."""
    return {
        "annotations": {"list": []},
        "description": dashboard.description,
        "editable": True,
        "graphTooltip": 1,
        "links": [
            {
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
                "tags": [TAG],
                "title": "Tailrace",
                "type": "dashboards",
            }
        ],
        "panels": list(_placed(dashboard.rows)),
        "refresh": "30s",
        "schemaVersion": 39,
        "tags": [TAG],
        "templating": {"list": list(_variables(dashboard.several))},
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "title": dashboard.title,
        "uid": f"tailrace-{name}",
    }


def _variables(several: bool) -> Iterator[Json]:
    yield {
        "current": {},
        "label": "Data source",
        "name": "datasource",
        "query": "prometheus",
        "type": "datasource",
    }
    yield _choice("namespace", "Namespace", "label_values(tailrace_up, namespace)", several=True)
    yield _choice("job", "Service", 'label_values(tailrace_up{namespace=~"$namespace"}, job)', several=True)
    query = f"label_values(tailrace_query_active{{{SERVICE}}}, query)"
    yield _choice("query", "Query", query, several=several)


def _choice(name: str, label: str, query: str, *, several: bool) -> Json:
    """A variable whose values Prometheus knows. "All" matches a missing label too, as outside Kubernetes."""
    chosen: Json = {"current": {"selected": True, "text": "All", "value": "$__all"}} if several else {"current": {}}
    return {
        **chosen,
        **({"allValue": ".*"} if several else {}),
        "datasource": DATASOURCE,
        "definition": query,
        "includeAll": several,
        "label": label,
        "multi": several,
        "name": name,
        "query": {"qryType": 1, "query": query, "refId": "Variable"},
        "refresh": 2,
        "sort": 1,
        "type": "query",
    }


def _placed(rows: Sequence[Row]) -> Iterator[Json]:
    """All panels with their places: each row has a heading, and its panels flow from left to right."""
    number, top = 0, 0

    def at(x: int, y: int, width: int, height: int) -> Json:
        nonlocal number
        number += 1
        return {"gridPos": {"h": height, "w": width, "x": x, "y": y}, "id": number}

    for row in rows:
        yield {"collapsed": False, "panels": [], "title": row.title, "type": "row", **at(0, top, WIDTH, 1)}
        top += 1
        for line in _lines(row.panels):
            left = 0
            height = max(panel.height for panel in line)
            for panel in line:
                place = at(left, top, panel.width, height)
                left += panel.width
                yield {**_common(panel), **panel.model(), **place}
            top += height


def _lines(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    """The panels as they stand beside one another."""
    line: list[Panel] = []
    for panel in panels:
        if sum(each.width for each in line) + panel.width > WIDTH:
            yield line
            line = []
        line.append(panel)
    if line:
        yield line


def _common(panel: Panel) -> dict[str, Any]:
    return {"datasource": DATASOURCE, "description": panel.description, "title": panel.title}
