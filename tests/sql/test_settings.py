"""SET: Flink's keys that mean something here, those that do no harm, and the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.plan.nodes import Aggregate
from service.plan.walk import in_order
from service.sql.pipeline import PipelineErrors, read
from service.sql.set_keys import FAMILIES, SETTINGS
from tests.sql.outline import TABLES

INSERT = "CREATE TABLE out (n BIGINT) WITH ('connector' = 'print'); INSERT INTO out SELECT COUNT(*) FROM a;"


def mistakes(text: str) -> list[str]:
    with pytest.raises(PipelineErrors) as raised:
        read(text)
    return [str(m) for m in raised.value.mistakes]


def test_a_setting_holds_from_its_line_on():
    pipeline = read(
        f"{TABLES}{INSERT}SET 'table.exec.state.ttl' = '1 d';{INSERT.split(';')[1]};"
        f"RESET 'table.exec.state.ttl';{INSERT.split(';')[1]}"
    )
    ttls = [node.ttl for job in pipeline.jobs for node in in_order(job.sinks) if isinstance(node, Aggregate)]
    assert ttls == [0, 86_400_000, 0]


def test_the_zone_and_the_name_of_a_job_are_settings():
    (job,) = read(f"{TABLES}SET 'table.local-time-zone' = 'Europe/Berlin';SET 'pipeline.name' = 'counts';{INSERT}").jobs
    assert (job.name, job.zone) == ("counts", "Europe/Berlin")
    assert dict(job.settings) == {"pipeline.name": "counts", "table.local-time-zone": "Europe/Berlin"}


def test_the_name_of_a_job_stays_in_its_folder_whatever_its_tables_are_called():
    out = "CREATE TABLE `../t/x` (n BIGINT) WITH ('connector' = 'print'); INSERT INTO `../t/x` SELECT COUNT(*) FROM a;"
    (job,) = read(f"{TABLES}{out}").jobs
    assert job.name == "_._t_x"


def test_a_key_that_changes_no_answer_is_taken_and_left_out():
    (job,) = read(
        f"{TABLES}SET 'parallelism.default' = '4';SET 'execution.checkpointing.interval' = '10s';{INSERT}"
    ).jobs
    assert job.settings == ()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            "SET 'table.exec.state.tll' = '1 d'",
            "pipeline.sql:1:5: the setting 'table.exec.state.tll' is not known\n"
            '  hint:   did you mean "table.exec.state.ttl"?',
        ),
        (
            "SET 'table.exec.state.ttl' = 'soon'",
            "pipeline.sql:1:30: 'table.exec.state.ttl' cannot be 'soon'\n"
            "  detail: it must be a duration such as '500 ms', '10 s', '5 min', '1 h' or '7 d'",
        ),
        (
            "SET 'table.local-time-zone' = 'Europe/Berlim'",
            "pipeline.sql:1:31: 'table.local-time-zone' cannot be 'Europe/Berlim'\n"
            "  detail: it must be a time zone such as 'Europe/Berlin', 'UTC' or 'GMT-08:00', in whole hours\n"
            '  hint:   did you mean "Europe/Berlin"?',
        ),
        (
            "SET 'pipeline.name' = '../../x'",
            "pipeline.sql:1:23: 'pipeline.name' cannot be '../../x'\n"
            "  detail: it must be a name of at most 128 letters, digits, '_', '.', '-' or blanks, which begins with "
            "none of the last three: it names folders, too",
        ),
        (
            "SET 'execution.runtime-mode' = 'batch'",
            "pipeline.sql:1:32: a pipeline runs as a stream\n"
            "  hint:   bound the sources with 'scan.bounded.mode' to make it end",
        ),
        (
            "SET 'table.exec.emit.early-fire.enabled' = 'often'",
            "pipeline.sql:1:44: 'table.exec.emit.early-fire.enabled' cannot be 'often'\n"
            "  detail: it must be 'true' or 'false'",
        ),
    ],
)
def test_a_setting_without_a_meaning_is_refused(text: str, mistake: str):
    assert mistakes(text) == [mistake]


@pytest.mark.parametrize(
    ("written", "zone"),
    [("GMT-08:00", "Etc/GMT+8"), ("GMT+1", "Etc/GMT-1"), ("GMT+00:00", "UTC"), ("Asia/Kolkata", "Asia/Kolkata")],
)
def test_a_zone_may_be_written_as_a_distance_from_utc(written: str, zone: str):
    assert read(f"{TABLES}SET 'table.local-time-zone' = '{written}'; {INSERT}").jobs[0].zone == zone


@pytest.mark.parametrize("key", (Path(__file__).parent / "flink_set_keys.txt").read_text().split())
def test_every_key_of_flink_sql_has_a_verdict(key: str):
    assert key in SETTINGS or any(key.startswith(start) for start in FAMILIES), key


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("table.exec.local-hash-agg.adaptive.enabled", "it is for batch jobs, and a pipeline is a stream"),
        ("table.optimizer.runtime-filter.enabled", "it is for batch jobs, and a pipeline is a stream"),
        ("table.optimizer.non-deterministic-update.strategy", "a row is always taken back as it was written"),
        ("table.optimizer.delta-join.strategy", "a join keeps the rows of both sides as state"),
        ("table.optimizer.union-all-as-breakpoint-enabled", "the engine here decides this itself"),
        ("execution.shutdown-on-application-finish", "the service ends when its last job has ended"),
        ("queryable-state.enable", "`tailrace state` reads the state of a job from its checkpoint"),
    ],
)
def test_a_key_without_effect_is_noted_with_the_reason(key: str, why: str):
    pipeline = read(f"{TABLES}SET '{key}' = 'x';{INSERT}")
    assert [(note.primary, note.detail) for note in pipeline.notes] == [(f"the setting '{key}' has no effect", why)]


def test_a_key_that_would_change_what_a_star_stands_for_is_refused():
    assert mistakes("SET 'table.column-expansion-strategy' = 'EXCLUDE_DEFAULT_VIRTUAL_METADATA_COLUMNS'") == [
        "pipeline.sql:1:5: the setting 'table.column-expansion-strategy' is not supported\n"
        "  detail: * stands for all columns of a table: name those that you want"
    ]


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_says_what_it_is_for(key: str):
    known = SETTINGS[key]
    assert sum(map(bool, (known.meaning, known.ignored, known.refused))) == 1
