"""Tailrace leaves the rows that Flink was seen to leave, or differs as the list says."""

from __future__ import annotations

import pytest

from bench.cases import QUERIES
from bench.compare import golden
from bench.compare.__main__ import main
from bench.compare.generated import generated
from bench.compare.known import rows_difference, verdict
from bench.compare.nexmark import nexmark
from bench.compare.play import canonical, play
from bench.compare.recorded import recorded, stream_of
from bench.compare.streams import applied, cases
from service.sql.errors import PipelineErrors

KNOWN = verdict().known
ANSWERED = [case for case in recorded() if "rows" in case]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["name"])
def test_a_stream_leaves_the_rows_that_it_leaves_on_flink(case):
    try:
        difference = rows_difference(canonical(case["rows"]), play(stream_of(case))["results"])
    except PipelineErrors as errors:
        difference = str(errors)
    assert bool(difference) == (case["name"] in KNOWN), difference


def test_every_stream_that_is_asked_has_been_recorded():
    assert [case["name"] for case in cases()] == [case["name"] for case in recorded()]


def test_known_differences_speak_of_cases_that_exist():
    streams = {case["name"] for case in [*cases(), *generated(), *nexmark()]}
    assert {name for name in KNOWN if "/" not in name} <= streams


def test_generated_streams_never_retract_what_is_not_there():
    for case in generated():
        for name, table in case["tables"].items():
            if table.get("mode") == "retract":
                applied([[kind, row] for owner, kind, row in case["arrivals"] if owner == name])


def test_generated_streams_are_the_same_each_time():
    assert list(generated()) == list(generated())


def test_numbers_and_times_have_one_form():
    assert canonical([[1.50, "2024-01-01 00:00:00.500", None, True]]) == [
        ("1.5", "2024-01-01 00:00:00.5", "NULL", "true")
    ]
    assert canonical([["1.500", "2024-01-01 00:00:00", "007", "-0.0"]]) == [("1.5", "2024-01-01 00:00:00", "7", "0")]


def test_arrays_and_maps_have_one_form():
    assert canonical([[[1, None], {"b": 1, "a": 2}]]) == canonical([["[1,null]", '{"a":2,"b":1}']])
    assert canonical([["[no json"]]) == [("[no json",)]


def test_the_queries_of_nexmark_are_the_files_over_events_that_end_sessions():
    found = {case["name"].removeprefix("Nexmark "): case for case in nexmark()}
    assert {path.stem for path in (QUERIES / "nexmark").glob("q*.sql")} == set(found)
    sessions = found["q11"]
    assert "SESSION(B.`dateTime`, INTERVAL '10' SECOND)" in sessions["query"]
    assert [len(found[name]["views"]) for name in ("q11", "q12", "q18", "q19")] == [0, 1, 0, 0]
    answered = ("bidder BIGINT", "bid_count BIGINT", "starttime TIMESTAMP(3)", "endtime TIMESTAMP(3)")
    rows = play(stream_of({**sessions, "columns": answered}))["results"]
    assert sum(int(count) for _, count, *_ in rows) == len(sessions["arrivals"])
    assert len(rows) > len({bidder for bidder, *_ in rows})


def test_the_side_input_of_nexmark_is_a_database_that_is_asked_for_every_bid():
    (case,) = (case for case in nexmark() if case["name"] == "Nexmark q13")
    answered = ("auction BIGINT", "bidder BIGINT", "price BIGINT", "dateTime TIMESTAMP(3)", "value STRING")
    rows = play(stream_of({**case, "columns": answered}))["results"]
    side = {row[0]: row[1] for table, _, row in case["arrivals"] if table == "side_input"}
    met = [(str(row[0]), side[row[0]]) for table, _, row in case["arrivals"] if table == "bid" and row[0] in side]
    assert sorted((row[0], row[-1]) for row in rows) == sorted(met)
    assert 0 < len(met) < sum(table == "bid" for table, *_ in case["arrivals"])


def test_a_row_that_one_side_has_twice_is_a_difference():
    assert rows_difference([("a",), ("a",)], [("a",)]) == "  only Flink:    a"


def test_a_golden_case_is_played_with_the_columns_that_its_tables_declare():
    """Its program reads the place of each record as well, for the order of rows of one time."""
    case = golden.of_folder(golden.FOLDER / "over_apart_ties")
    assert case is not None
    assert case.stream.heads == dict.fromkeys(("visits", "calls"), ("id", "who", "page", "ts"))
    assert play(case.stream)["paths"]


def test_a_name_that_no_case_has_is_an_error_that_says_so(capsys: pytest.CaptureFixture[str]):
    assert main(["streams", "--only", "no such case"]) == 1
    assert "no case that can be compared is called no such case" in capsys.readouterr().err
