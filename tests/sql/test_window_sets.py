"""Set operations of windows: which they are, what they show and how long they keep rows."""

from __future__ import annotations

import pytest

from service.plan.describe import headline
from service.plan.explain import explain
from service.plan.nodes import Aggregate, Job, Mode, SetOperation, WindowAggregate
from service.plan.properties import event_time, mode, unique_keys
from service.plan.walk import in_order
from service.sql.pipeline import read
from tests.sql.test_window_joins import TABLES

CARRIED = "k, window_start, window_end"
WORDS = ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "UNION"]


def job_of(query: str) -> Job:
    (job,) = read(f"{TABLES} EXPLAIN {query}").explains
    return job


def counted(job: Job) -> list[type]:
    return [type(n) for n in in_order(job.sinks) if isinstance(n, Aggregate | SetOperation | WindowAggregate)]


@pytest.mark.parametrize("word", WORDS)
def test_rows_of_windows_are_counted_by_window_and_kept_until_it_closes(word: str):
    job = job_of(f"SELECT {CARRIED} FROM a {word} SELECT {CARRIED} FROM b")
    assert counted(job) == [WindowAggregate]
    assert mode(job.sinks[0].input) is Mode.APPEND
    assert explain(job).warnings == []


@pytest.mark.parametrize("word", WORDS)
def test_all_columns_of_a_windowed_answer_tell_its_rows_apart_unless_copies_are_kept(word: str):
    query = f"SELECT {CARRIED} FROM a {word} SELECT {CARRIED} FROM b"
    assert bool(unique_keys(job_of(query).sinks[0].input)) is (not word.endswith("ALL"))


def test_distinct_rows_of_windows_are_counted_by_window():
    job = job_of(f"SELECT DISTINCT {CARRIED} FROM a")
    assert counted(job) == [WindowAggregate]
    assert explain(job).warnings == []
    (node,) = (n for n in in_order(job.sinks) if isinstance(n, WindowAggregate))
    assert headline(node).endswith(": distinct keys")


def test_rows_of_aggregated_windows_are_compared_by_them():
    job = job_of("SELECT * FROM c EXCEPT SELECT k, n, since, until FROM s")
    assert counted(job) == [WindowAggregate] * 3


def test_a_chain_of_set_operations_is_of_windows_throughout():
    query = f"SELECT {CARRIED} FROM a UNION SELECT {CARRIED} FROM b EXCEPT SELECT {CARRIED} FROM g"
    assert set(counted(job_of(query))) == {WindowAggregate}


@pytest.mark.parametrize("word", ["INTERSECT", "EXCEPT ALL", "UNION", "UNION ALL"])
def test_the_window_time_goes_on_where_both_sides_show_it(word: str):
    shown = "k, window_time, window_start, window_end"
    query = f"SELECT {shown} FROM a {word} SELECT {shown} FROM b"
    assert event_time(job_of(query).sinks[0].input) == 1


@pytest.mark.parametrize("word", ["INTERSECT", "EXCEPT ALL", "UNION", "UNION ALL"])
def test_the_windows_are_grouped_by_again(word: str):
    query = f"SELECT {CARRIED} FROM a {word} SELECT {CARRIED} FROM b"
    grouped = f"SELECT window_start, COUNT(*) FROM ({query}) GROUP BY window_start, window_end"
    assert set(counted(job_of(grouped))) == {WindowAggregate}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, window_start FROM a INTERSECT SELECT k, window_start FROM b",
        "SELECT k, window_end, window_start FROM a INTERSECT SELECT k, window_start, window_end FROM b",
        f"SELECT {CARRIED} FROM a INTERSECT SELECT {CARRIED} FROM p",
        f"SELECT {CARRIED} FROM a EXCEPT SELECT k, CAST(window_start AS TIMESTAMP(3)), window_end FROM plain",
    ],
)
def test_rows_without_a_common_window_are_kept_for_ever(query: str):
    assert SetOperation in counted(job_of(query))
