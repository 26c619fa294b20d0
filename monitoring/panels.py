"""Panels as values, and how Grafana writes them.

In an expression `%Q` stands for the labels of the queries that the variables of a dashboard choose, `%J` for those of
their services: metrics of processes know nothing of queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SERVICE = 'namespace=~"$namespace",job=~"$job"'
QUERY = f'{SERVICE},query=~"$query"'

GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """One query of a panel; `legend` names its series, with labels as {{label}}."""

    expr: str
    legend: str = ""

    @property
    def promql(self) -> str:
        """The expression, with the labels that the dashboard chooses."""
        return self.expr.replace("%Q", QUERY).replace("%J", SERVICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What all panels have. `width` is in 24ths of the page, `height` in Grafana's units of 30 pixels."""

    title: str
    description: str
    unit: str
    width: int = 8
    height: int = 8

    def model(self) -> Json:
        """The panel as Grafana's JSON, without its place."""
        raise NotImplementedError

    def targets(self) -> tuple[Target, ...]:
        """Its queries."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Panel):
    """Lines over time. `stacked` areas add up; series whose legend is in `dashed` are bounds, not measurements."""

    lines: tuple[Target, ...]
    stacked: bool = False
    dashed: tuple[str, ...] = ()
    width: int = 12

    def targets(self) -> tuple[Target, ...]:
        return self.lines

    def model(self) -> Json:
        custom = {
            "drawStyle": "line",
            "fillOpacity": 40 if self.stacked else 8,
            "lineWidth": 1,
            "showPoints": "never",
            "stacking": {"group": "A", "mode": "normal" if self.stacked else "none"},
        }
        dashed = [("custom.lineStyle", {"dash": [8, 6], "fill": "dash"}), ("custom.fillOpacity", 0)]
        return {
            "type": "timeseries",
            "fieldConfig": {
                "defaults": {"color": {"mode": "palette-classic"}, "custom": custom, "min": 0, "unit": self.unit},
                "overrides": [override(legend, dict(dashed)) for legend in self.dashed],
            },
            "options": {
                "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom"},
                "tooltip": {"mode": "multi", "sort": "desc"},
            },
            "targets": [_target(i, t, "time_series") for i, t in enumerate(self.lines)],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat(Panel):
    """One number. It turns yellow and red from the values of `warn` and `bad` on; `words` are shown for numbers, each
    with its colour."""

    value: Target
    warn: float | None = None
    bad: float | None = None
    words: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    width: int = 4
    height: int = 4

    def targets(self) -> tuple[Target, ...]:
        return (self.value,)

    def model(self) -> Json:
        steps: list[Json] = [{"color": GREEN if (self.warn, self.bad) != (None, None) else BLUE, "value": None}]
        steps += [{"color": c, "value": v} for c, v in ((YELLOW, self.warn), (RED, self.bad)) if v is not None]
        options = {str(n): {"color": c, "index": i, "text": t} for i, (n, (t, c)) in enumerate(self.words.items())}
        return {
            "type": "stat",
            "fieldConfig": {
                "defaults": {
                    "color": {"mode": "thresholds"},
                    "mappings": [{"options": options, "type": "value"}] if options else [],
                    "thresholds": {"mode": "absolute", "steps": steps},
                    "unit": self.unit,
                },
                "overrides": [],
            },
            "options": {
                "colorMode": "value",
                "graphMode": "none" if self.words else "area",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                "textMode": "value",
            },
            "targets": [_target(0, self.value, "time_series")],
        }


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, its query, its unit. It turns yellow and red as a Stat does."""

    title: str
    expr: str
    unit: str
    warn: float | None = None
    bad: float | None = None
    words: Mapping[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Panel):
    """A row for each combination of the labels `keys`, which every column's query is grouped by. `link` opens another
    page from the last of them."""

    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    link: str = ""
    width: int = 24

    def targets(self) -> tuple[Target, ...]:
        return tuple(Target(column.expr) for column in self.columns)

    def model(self) -> Json:
        names = {f"Value #{_letter(i)}": c.title for i, c in enumerate(self.columns)}
        if len(self.columns) == 1:
            names = {"Value": self.columns[0].title}
        overrides = [override(column.title, _column(column)) for column in self.columns]
        if self.link:
            links = [{"title": "Look closer", "url": self.link}]
            overrides.append(override(self.keys[-1], {"links": links}))
        return {
            "type": "table",
            "fieldConfig": {"defaults": {"custom": {"align": "auto", "filterable": True}}, "overrides": overrides},
            "options": {"cellHeight": "sm", "showHeader": True, "sortBy": []},
            "targets": [_target(i, Target(c.expr), "table") for i, c in enumerate(self.columns)],
            "transformations": [
                {"id": "merge", "options": {}},
                {
                    "id": "organize",
                    "options": {
                        "excludeByName": {"Time": True},
                        "indexByName": {name: i for i, name in enumerate((*self.keys, *names))},
                        "renameByName": names,
                    },
                },
            ],
        }


def override(name: str, properties: Mapping[str, Any]) -> Json:
    """Settings of the one field of that name."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties.items()],
    }


def _column(column: Column) -> Json:
    properties: Json = {"unit": column.unit}
    if column.words:
        options = {str(n): {"color": c, "index": i, "text": t} for i, (n, (t, c)) in enumerate(column.words.items())}
        properties["mappings"] = [{"options": options, "type": "value"}]
    steps: list[Json] = [{"color": "text", "value": None}]
    steps += [{"color": c, "value": v} for c, v in ((YELLOW, column.warn), (RED, column.bad)) if v is not None]
    if column.words or len(steps) > 1:
        properties["thresholds"] = {"mode": "absolute", "steps": steps}
        properties["custom.cellOptions"] = {"type": "color-text"}
    return properties


def _target(index: int, target: Target, form: str) -> Json:
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": target.promql,
        "format": form,
        "instant": form == "table",
        "legendFormat": target.legend or "__auto",
        "range": form != "table",
        "refId": _letter(index),
    }


def _letter(index: int) -> str:
    return chr(ord("A") + index)
