"""The table and the plot say what was measured, failures too."""

from __future__ import annotations

import csv
from dataclasses import replace
from xml.etree import ElementTree

from bench.measure import Run, Sample
from bench.plot import bar_chart
from bench.report import OF_ONE_EXECUTOR, geometric_means, save, table


def run(engine: str, rate: int) -> Run:
    samples = (Sample(1.0, 20), Sample(2.0, 20 + rate), Sample(3.0, 100))
    return Run("group-1k", engine, 100, 3.0, first_commit=1.0, peak_memory=2**30, samples=samples)


RUNS = (run("flink", 70), run("tailrace", 75), Run("join", "tailrace", 100, error="ended with 1: no room"))


def test_a_ratio_is_to_flink_on_the_same_case():
    lines = table(RUNS).splitlines()
    flink, tailrace = (dict(zip(lines[0].split(" | "), line.split(" | "), strict=True)) for line in lines[2:4])
    assert [cell.strip() for cell in (flink["of Flink"], tailrace["of Flink"])] == ["1.00", "1.07"]
    assert flink["memory MiB"].strip() == "1,024"


def test_executors_are_reported_in_parts_of_one():
    runs = [run("tailrace", 77), run("tailrace-1-executor", 70), run("tailrace-2-executors", 75)]
    lines = table(runs, OF_ONE_EXECUTOR).splitlines()
    column = lines[0].split(" | ").index("of 1 executor")
    assert [line.split(" | ")[column].strip() for line in lines[2:]] == ["1.10", "1.00", "1.07"]
    assert "of Flink" not in lines[0]


def test_a_run_that_was_given_up_is_compared_by_what_it_had_read():
    runs = [run("flink", 70), run("tailrace", 75), replace(run("tailrace", 80), case="join")]
    runs.append(Run("join", "flink", 100, error="given up after 5 s and 50 of 100 rows", given_up=10))
    assert geometric_means(runs, "tailrace", ["flink", "spark"]) == (
        "tailrace of flink: 2.93 (geometric mean over 2 queries, 1 of which flink did not end)"
    )
    assert " 8.00 " in table(runs)


def test_a_failed_run_is_in_the_table_with_its_reason():
    assert "join on tailrace ended with 1: no room" in table(RUNS)


def test_what_is_saved_can_be_read_again(tmp_path):
    save(RUNS, tmp_path)
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert [row["rate_20_90"] for row in rows] == ["70", "75", "0"]
    assert rows[2]["error"] == "ended with 1: no room"
    assert len(list(csv.DictReader((tmp_path / "samples.csv").read_text().splitlines()))) == 6
    assert ElementTree.parse(tmp_path / "rates.svg").getroot().tag.endswith("svg")


def test_bars_are_as_long_as_their_values():
    svg = bar_chart("a < b", "rows", {"one": {"x": 10.0, "y": 5.0}}, ["x", "y"])
    rects = ElementTree.fromstring(svg).findall("{http://www.w3.org/2000/svg}rect")
    widths = [float(rect.attrib["width"]) for rect in rects[3:]]
    assert widths[0] == 2 * widths[1]
