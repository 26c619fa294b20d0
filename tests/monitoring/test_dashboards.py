"""The dashboards as Grafana gets them."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from monitoring.dashboards import DASHBOARDS, text
from tests.monitoring.rules_file import DASHBOARDS as FOLDER

MODELS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}

every_dashboard = pytest.mark.parametrize("name", MODELS)

UNITS = {"Bps", "bytes", "cps", "dateTimeAsIso", "none", "percentunit", "s", "short"}


def panels(name: str) -> list[dict[str, Any]]:
    """The panels of a dashboard that show something."""
    return [panel for panel in MODELS[name]["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_file_is_what_its_tables_say(name: str):
    assert (FOLDER / f"{name}.json").read_text() == text(DASHBOARDS[name]), "run: make chart"


def test_there_is_no_other_file():
    assert set(MODELS) == set(DASHBOARDS) == {"overview", "pipeline"}


@every_dashboard
def test_a_dashboard_can_be_provisioned_and_found_again(name: str):
    model = MODELS[name]
    assert model["uid"] == f"tailrace-{name}"
    assert "id" not in model, "an id of one Grafana means nothing to another"
    assert model["tags"] == ["tailrace"]


@every_dashboard
def test_what_is_shown_is_chosen_by_data_source_namespace_service_and_query(name: str):
    variables = {v["name"]: v for v in MODELS[name]["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "job", "query"]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    for variable in ("namespace", "job", "query"):
        assert variables[variable]["datasource"]["uid"] == "${datasource}"


@every_dashboard
def test_a_panel_says_what_it_shows_and_in_which_unit(name: str):
    for panel in panels(name):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        fields = panel["fieldConfig"]
        units = [p["value"] for o in fields["overrides"] for p in o["properties"] if p["id"] == "unit"]
        units += [fields["defaults"]["unit"]] if panel["type"] != "table" else []
        assert units, panel["title"]
        assert set(units) <= UNITS, panel["title"]


@every_dashboard
def test_panels_stand_side_by_side(name: str):
    def covers(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        return {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}

    placed = MODELS[name]["panels"]
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in placed)
    assert len({panel["id"] for panel in placed}) == len(placed)
    for one, other in combinations(placed, 2):
        assert not covers(one) & covers(other), (one["title"], other["title"])


@every_dashboard
def test_a_rate_is_taken_over_the_interval_that_fits_the_page(name: str):
    for panel in panels(name):
        for target in panel["targets"]:
            windows = re.findall(r"\b(?:rate|deriv)\([^\[]*\[([^\]]*)\]", target["expr"])
            assert set(windows) <= {"$__rate_interval"}, target["expr"]


@every_dashboard
def test_every_query_obeys_the_variables(name: str):
    for panel in panels(name):
        for target in panel["targets"]:
            metrics = re.findall(r"\b(?:ALERTS|(?:tailrace|process)_\w+)(\{[^}]*\})?", target["expr"])
            assert metrics, target["expr"]
            for labels in metrics:
                assert 'namespace=~"$namespace",job=~"$job"' in labels, target["expr"]


@every_dashboard
def test_the_queries_of_a_panel_have_names_of_their_own(name: str):
    for panel in panels(name):
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
        lines = [t["legendFormat"] for t in panel["targets"] if t["format"] == "time_series"]
        assert len(set(lines)) == len(lines), panel["title"]


def test_a_query_in_the_overview_opens_its_own_page():
    (table,) = (p for p in panels("overview") if p["title"] == "Queries")
    (link,) = (p["value"][0] for o in table["fieldConfig"]["overrides"] for p in o["properties"] if p["id"] == "links")
    assert link["url"].startswith(f"/d/{MODELS['pipeline']['uid']}?")
    variables = {v["name"] for v in MODELS["pipeline"]["templating"]["list"]}
    assert set(re.findall(r"var-(\w+)=", link["url"])) <= variables
