"""SET 'table.exec.emit...': which windows answer more than once, and what is refused."""

from __future__ import annotations

import pytest

from operators.windows.firing import Firing
from service.plan.nodes import WindowAggregate
from service.plan.walk import in_order
from service.sql.pipeline import PipelineErrors, read
from tests.sql.outline import TABLES

SINK = "CREATE TABLE out (n BIGINT) WITH ('connector' = 'print');"
JSON = (
    "CREATE TABLE out (n BIGINT)"
    " WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b', 'format' = 'json');"
)
TUMBLE = "SELECT COUNT(*) FROM pay GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)"
TVF = (
    "SELECT COUNT(*) FROM CUMULATE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)"
    " GROUP BY window_start, window_end"
)
PROCESSING = "SELECT COUNT(*) FROM pay GROUP BY TUMBLE(at, INTERVAL '1' HOUR)"
SESSION = "SELECT COUNT(*) FROM pay GROUP BY SESSION(ts, INTERVAL '1' HOUR)"
SESSION_TVF = (
    "SELECT MAX(id) FROM SESSION(TABLE pay PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' HOUR)"
    " GROUP BY window_start, window_end"
)

EARLY = {"early-fire.enabled": "true", "early-fire.delay": "10 s"}
LATE = {"late-fire.enabled": "true", "late-fire.delay": "0 s"}
LATENESS = {"allow-lateness": "1 min"}


def written(query: str, settings: dict[str, str], sink: str = SINK) -> str:
    sets = "".join(f"SET 'table.exec.emit.{key}' = '{value}';" for key, value in settings.items())
    return f"{TABLES}{sink}{sets}\nINSERT INTO out {query};"


def firing(query: str, settings: dict[str, str], before: str = "") -> Firing | None:
    (job,) = read(before + written(query, settings)).jobs
    (found,) = [node.firing for node in in_order(job.sinks) if isinstance(node, WindowAggregate)]
    return found


def mistakes(query: str, settings: dict[str, str], sink: str = SINK) -> list[str]:
    with pytest.raises(PipelineErrors) as raised:
        read(written(query, settings, sink))
    lines = [str(m).split("\n") for m in raised.value.mistakes]
    return ["\n".join([line.split(":", 3)[3].strip(), *rest]) for line, *rest in lines]


@pytest.mark.parametrize(
    ("query", "settings", "expected"),
    [
        (TUMBLE, {}, None),
        (TUMBLE, {"early-fire.enabled": "false", "early-fire.delay": "10 s"}, None),
        (TUMBLE, EARLY, Firing(10_000, None, 0)),
        (TVF, EARLY, Firing(10_000, None, 0)),
        (TUMBLE, {**LATE, **LATENESS}, Firing(None, 0, 60_000)),
        (TVF, {**EARLY, **LATE, **LATENESS}, Firing(10_000, 0, 60_000)),
        (PROCESSING, {**EARLY, **LATE, **LATENESS}, Firing(10_000, None, 0)),
        (PROCESSING, {**LATE, **LATENESS}, None),
        (SESSION, {}, None),
    ],
)
def test_a_window_answers_as_the_settings_say(query: str, settings: dict[str, str], expected: Firing | None):
    assert firing(query, settings) == expected


def test_without_a_lateness_rows_may_be_as_late_as_state_lives():
    assert firing(TUMBLE, LATE, "SET 'table.exec.state.ttl' = '2 min';") == Firing(None, 0, 120_000)


def test_a_lateness_without_late_firing_is_noted():
    pipeline = read(written(TUMBLE, LATENESS))
    assert [note.primary for note in pipeline.notes] == ["'table.exec.emit.allow-lateness' has no effect"]


@pytest.mark.parametrize("query", [SESSION, SESSION_TVF])
def test_sessions_answer_once(query: str):
    assert mistakes(query, EARLY) == [
        "a window of sessions answers once, when it closes\n"
        "  detail: 'table.exec.emit.early-fire.enabled' is set, which is for TUMBLE, HOP and CUMULATE\n"
        "  hint:   RESET 'table.exec.emit.early-fire.enabled' before this statement"
    ]


@pytest.mark.parametrize("which", ["early", "late"])
def test_firing_needs_to_know_how_often(which: str):
    assert mistakes(TUMBLE, {f"{which}-fire.enabled": "true", **(LATENESS if which == "late" else {})}) == [
        f"{which} firing needs to know how often\n"
        f"  detail: 'table.exec.emit.{which}-fire.enabled' is set, 'table.exec.emit.{which}-fire.delay' is not\n"
        f"  hint:   SET 'table.exec.emit.{which}-fire.delay' = '10 s', or '0 s' for every batch that changes the answer"
    ]


def test_late_firing_needs_to_know_how_late():
    (mistake,) = mistakes(TUMBLE, LATE)
    assert mistake.startswith("late firing needs to know how late a row may be\n")
    assert mistake.endswith("  hint:   SET 'table.exec.emit.allow-lateness' = '1 min'")


def test_a_sink_that_cannot_say_that_a_row_was_changed_is_refused():
    (mistake,) = mistakes(TUMBLE, EARLY, JSON)
    assert mistake.startswith('table "out" takes new rows only, but the query updates its answer\n')
    assert "a window that answers early or late ('table.exec.emit...') changes rows" in mistake
