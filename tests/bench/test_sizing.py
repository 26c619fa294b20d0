"""What is run to measure sizes, and the tables that it makes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from bench.processes import Held
from bench.scrape import total
from bench.sizing import BY_KEYS, BY_SETTINGS, SETUPS, Sizes, planned
from bench.sizing_report import save, tables
from bench.workloads import WORKLOADS, Workload
from service.settings import load
from service.sql.pipeline import read

DAY = 86_400_000
METRICS = """\
# HELP tailrace_state_rows Rows of state of an operator.
# TYPE tailrace_state_rows gauge
tailrace_state_rows{operator="join_1",query="q"} 20.0
tailrace_state_rows{operator="group_by_1",query="q"} 3.0
# HELP tailrace_batch_duration_seconds Time of a batch.
# TYPE tailrace_batch_duration_seconds histogram
tailrace_batch_duration_seconds_bucket{le="+Inf",query="q"} 4.0
tailrace_batch_duration_seconds_count{query="q"} 4.0
tailrace_batch_duration_seconds_sum{query="q"} 2.5
"""

each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)


def batched(lines: list[list[str]], size: int) -> list[list[list[str]]]:
    """The lines, `size` at a time."""
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def sizes(setup: str = "group-by", keys: int = 1_000) -> Sizes:
    mib = 2**20
    return Sizes(
        setup=next(each for each in SETUPS if each.name == setup),
        keys=keys,
        rows=keys,
        state=40 * keys,
        checkpoint=3 * mib,
        copies=mib,
        spark=2 * mib,
        written_a_row=123.4,
        written_a_tick=2048,
        loading={"driver": Held(100 * mib, 9 * mib), "JVM": Held(900 * mib, 0)},
        steady={"driver": Held(90 * mib, 10 * mib), "JVM": Held(800 * mib, 5 * mib)},
        batch_seconds=0.5,
        restart_seconds=12.34,
    )


@each_workload
def test_a_workload_is_one_job_without_an_end(workload: Workload):
    topics = tuple(f"topic-{number}" for number, _ in enumerate(workload.streams))
    pipeline = read(workload.sql("broker:9092", "group", "output", topics))
    assert len(pipeline.jobs) == 1
    sources = [table for table in pipeline.tables.values() if table.name != "results"]
    assert {topic for table in sources for topic in table.connector.topics} == set(topics)
    assert all(table.connector.bounded.mode == "unbounded" for table in sources)


def test_rows_that_come_later_are_of_keys_that_are_known_and_of_the_window_that_is_open():
    for workload in (each for each in WORKLOADS if each.name != "join"):
        (stream,) = workload.streams
        held = [json.loads(stream.held(number)) for number in range(50)]
        value = stream.later(50)
        later = [json.loads(value(number)) for number in range(100)]
        assert {row["account"] for row in held} == set(range(50)) >= {row["account"] for row in later}
        assert {row["ms"] // DAY for row in [*held, *later]} == {held[0]["ms"] // DAY}
        assert [row["ms"] for row in [*held, *later]] == sorted(row["ms"] for row in [*held, *later])


def test_each_order_of_the_join_has_a_shipment_those_that_come_later_too():
    orders, shipments = next(each.streams for each in WORKLOADS if each.name == "join")
    assert [json.loads(orders.held(n))["id"] for n in range(5)] == list(range(5))
    assert [json.loads(shipments.held(n))["order_id"] for n in range(5)] == list(range(5))
    assert json.loads(orders.later(5)(2))["id"] == json.loads(shipments.later(5)(2))["order_id"] == 7


def test_settings_are_compared_over_the_largest_number_of_keys():
    runs = planned(["group-by", "join", "one-task"], (10, 1_000, 100))
    assert [(setup.name, keys) for setup, keys in runs] == [
        *[("group-by", keys) for keys in (10, 1_000, 100)],
        *[("join", keys) for keys in (10, 1_000, 100)],
        ("one-task", 1_000),
    ]
    assert {setup.workload for setup in BY_SETTINGS} == {BY_KEYS[0].workload}


def test_every_setup_has_settings_that_exist():
    for setup in SETUPS:
        load(setup.variables)


def test_metrics_are_added_up_over_their_labels():
    assert total(METRICS, "tailrace_state_rows") == 23
    assert total(METRICS, "tailrace_batch_duration_seconds_count") == 4
    assert total(METRICS, "tailrace_batch_duration_seconds_sum") == 2.5
    assert total(METRICS, "tailrace_no_such_metric") == 0


def test_the_tables_show_bytes_memory_and_seconds():
    lines = [[cell.strip() for cell in line.split(" | ")] for line in tables([sizes()]).splitlines() if " | " in line]
    cells = {column: cell for head, _, line in batched(lines, 3) for column, cell in zip(head, line, strict=True)}
    assert cells["bytes a row"] == "40"
    assert cells["checkpoint MiB"] == "3.0"
    assert (cells["JVM"], cells["executor JVM"]) == ("800", "-")
    assert (cells["together"], cells["mapped files"], cells["together, loading"]) == ("890", "15", "1,000")
    assert (cells["batch s"], cells["restart s"]) == ("0.50", "12.3")


def test_what_is_saved_can_be_read_again(tmp_path: Path):
    save([sizes(), sizes("executors-2", 5)], tmp_path)
    first, second = csv.DictReader((tmp_path / "sizing.csv").read_text().splitlines())
    assert (first["setup"], first["keys"], first["state"]) == ("group-by", "1000", "40000")
    assert first["restart_seconds"] == "12.34"
    assert first["steady_JVM_own"] == str(800 * 2**20)
    assert (second["setup"], second["steady_executor_JVM_own"]) == ("executors-2", "0")
