"""The document behind the page."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.observability.page import document
from service.observability.page.history import SLOTS
from service.plan.explain import Explained
from tests.page.stage import COUNTS, NOON, SPENDING, Stage

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stage() -> Stage:
    stage = Stage(SPENDING, COUNTS)
    stage.start()
    for _ in range(20):
        stage.play(
            "spending",
            {"orders": [300, 100], "users": [2]},
            unread={"orders": [7, 5]},
            state={"join_1": 500, "window_aggregate_1": 40},
            watermarks={"orders": [4, 9]},
        )
        stage.play("counts", {"clicks": [10]})
    return stage


def job(stage: Stage, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(j for j in stage.json()["jobs"] if j["name"] == name)
    return found


def test_the_document_is_json_with_its_version(stage: Stage):
    answer = stage.answers["/status.json"]()
    assert answer.kind == "application/json"
    shown = json.loads(answer.body)
    assert shown["schema"] == document.SCHEMA
    assert (shown["now"], shown["started"]) == (NOON + 40, NOON)
    assert (shown["alive"], shown["ready"], shown["troubles"]) == (True, True, {})
    assert [j["name"] for j in shown["jobs"]] == ["spending", "counts"]


def test_a_table_shows_its_rows_its_lag_and_its_partitions(stage: Stage):
    orders, users = job(stage, "spending")["tables"]
    assert (orders["table"], orders["connector"], orders["format"], orders["topics"]) == (
        "orders", "kafka", "json", ["orders"],
    )  # fmt: skip
    assert (orders["rows"], orders["lag"], orders["has_watermark"]) == (8_000, 12, True)
    assert orders["rows_per_second"] == 200  # 20 batches of a second in the 40 seconds that both jobs took
    first, second = orders["partitions"]
    assert (first["partition"], first["read"], first["end"], first["lag"]) == (0, 6_000, 6_007, 7)
    assert first["rows_per_second"] == 150
    assert second["watermark"] == NOON + 39 - 9
    assert second["moved"] == NOON + 39
    assert (users["rows"], users["has_watermark"], users["partitions"][0]["watermark"]) == (40, False, None)


def test_operators_are_linked_with_the_steps_of_the_plan(stage: Stage):
    shown = job(stage, "spending")
    steps = {step["id"]: step for step in shown["plan"]["steps"]}
    by_name = {o["operator"]: o for o in shown["operators"]}
    assert steps[by_name["join_1"]["step"]]["text"] == "inner join on user_id = user_id"
    assert (by_name["join_1"]["state_rows"], by_name["join_1"]["state_bytes"]) == (500, 45_000)
    assert by_name["window_aggregate_1"]["watermark"] == NOON + 39 - 12
    assert by_name["window_aggregate_1"]["watermark_lag_seconds"] == 13
    assert by_name["consolidate_1"]["step"] is None


def test_the_plan_has_modes_keys_and_bounds(stage: Stage):
    plan = job(stage, "spending")["plan"]
    join = next(step for step in plan["steps"] if step["kind"] == "join")
    assert join["mode"] == "retract"
    assert [state["bound"] for state in join["state"]] == [None, None]
    assert {sink["table"]: (sink["mode"], sink["key"]) for sink in plan["sinks"]} == {
        "cities": ("retract", ["city"]),
        "minutes": ("append", []),
    }
    window = next(step for step in plan["steps"] if step["kind"] == "window aggregate")
    assert "watermark passes the window's end" in window["state"][0]["bound"]


def test_phases_are_means_of_a_batch_and_add_up_to_it(stage: Stage):
    batches = job(stage, "spending")["batches"]
    assert (batches["completed"], batches["recent"], batches["median_seconds"]) == (20, 20, 1)
    assert batches["busy"] == 0.5
    assert batches["phases"][0] == {"phase": "addBatch", "seconds": 0.78, "share": 0.78}
    assert sum(phase["seconds"] for phase in batches["phases"]) == pytest.approx(1)
    assert sum(phase["share"] for phase in batches["tasks"]) == pytest.approx(1, abs=1e-3)
    assert batches["tasks"][0]["phase"] == "operators"


def test_sinks_show_changes_and_records(stage: Stage):
    sinks = {sink["table"]: sink for sink in job(stage, "spending")["sinks"]}
    assert (sinks["cities"]["inserts"], sinks["cities"]["retractions"], sinks["cities"]["records"]) == (100, 40, 140)
    assert sinks["minutes"]["retractions"] == 0


def test_jobs_are_apart(stage: Stage):
    counts = job(stage, "counts")
    assert counts["pace"]["rows_in"] == pytest.approx(200 / 39, abs=0.01)
    assert [table["table"] for table in counts["tables"]] == ["clicks"]
    assert counts["late"]["total"] == 0


def test_history_is_an_hour_of_slots(stage: Stage):
    history = job(stage, "counts")["history"]
    assert {len(values) for values in history.values() if isinstance(values, list)} == {SLOTS}
    assert history["rows_in"][-1] == pytest.approx(5, abs=1)


def test_batches_older_than_five_minutes_are_forgotten_but_for_the_last_one():
    stage = Stage(COUNTS)
    stage.start()
    for _ in range(10):
        stage.play("counts", {"clicks": [100]}, seconds=60)
    assert job(stage, "counts")["batches"]["recent"] == 5
    stage.pass_time(1_000)
    assert job(stage, "counts")["batches"]["recent"] == 1


def test_the_last_errors_are_kept_in_full_and_a_very_long_one_from_both_ends():
    stage = Stage(COUNTS)
    stage.start()
    for number in range(9):
        stage.observer.failed("counts", f"error {number}", number, 1.0, f"begin {number} {'x' * 50_000} end")
    errors = job(stage, "counts")["errors"]
    assert [e["summary"] for e in errors] == [f"error {n}" for n in range(4, 9)]
    assert errors[-1]["text"].startswith("begin 8 xxx")
    assert errors[-1]["text"].endswith("xxx end")
    assert len(errors[-1]["text"]) < 21_000


def test_samples_are_the_last_few():
    stage = Stage(COUNTS)
    stage.start()
    for number in range(30):
        sample = {"reason": "bad-json", "detail": "", "origin": str(number), "value": "{", "whole": True}
        stage.play("counts", {"clicks": [1]}, samples=[{**sample, "late": number % 2 == 0}])
    shown = job(stage, "counts")
    assert [s["origin"] for s in shown["dead_letters"]["samples"]] == [str(n) for n in range(11, 30, 2)]
    assert [s["origin"] for s in shown["late"]["samples"]] == [str(n) for n in range(10, 30, 2)]


def test_a_table_that_two_steps_read_is_shown_once():
    joined = """
    SET 'pipeline.name' = 'pairs';
    CREATE TABLE t (a BIGINT, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
    CREATE TABLE o (a BIGINT, b BIGINT) WITH ('connector' = 'print');
    INSERT INTO o SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.b WHERE x.b > 1;
    """
    stage = Stage(joined)
    stage.start()
    stage.play("pairs", {"t": [5]})
    assert [table["table"] for table in job(stage, "pairs")["tables"]] == ["t"]


def test_a_service_that_is_not_ready_says_why():
    stage = Stage(COUNTS)
    stage.start()
    shown = stage.json()
    assert (shown["alive"], shown["ready"]) == (True, False)
    assert shown["troubles"] == {"counts": "the first batch is not done"}


def test_before_anything_starts_the_document_is_whole():
    shown = Stage(COUNTS).json()
    assert (shown["jobs"], shown["memory"], shown["executors"]) == ([], [], None)
    assert shown["settings"]


def test_every_field_is_described_and_nothing_else():
    text = (ROOT / "docs" / "status.md").read_text()
    described = set(re.findall(r"`([a-z_]+)`", text))
    parts = [value for value in vars(document).values() if dataclasses.is_dataclass(value) and value is not Explained]
    fields = {field.name for part in parts for field in dataclasses.fields(part)}
    assert sorted(fields - described) == []
    assert sorted(name for name in described - fields if "_" in name) == []
