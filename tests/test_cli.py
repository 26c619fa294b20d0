"""The commands: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.cli import main

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.sql"))
QUICKSTART = str(ROOT / "examples" / "quickstart.sql")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_every_example_is_valid(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(path)]) == 0
    assert "valid" in capsys.readouterr().out


def test_check_lists_every_mistake_and_answers_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wrong = tmp_path / "wrong.sql"
    wrong.write_text(
        "CREATE TABLE t (a BIGINT) WITH ('connector' = 'datagen');\n"
        "CREATE TABLE s (a BIGINT) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json');\n"
        "INSERT INTO s SELECT b FROM t;\n"
        "INSERT INTO s SELECT COUNT(*) FROM t GROUP BY c;\n"
    )
    assert main(["check", str(wrong)]) == 2
    printed = capsys.readouterr().err
    assert 'wrong.sql:3:22: column "b" does not exist' in printed
    assert 'wrong.sql:4:47: column "c" does not exist' in printed


def test_check_reports_what_a_plan_may_not_do_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wrong = tmp_path / "wrong.sql"
    wrong.write_text(
        "CREATE TABLE t (a BIGINT) WITH ('connector' = 'datagen');\n"
        "CREATE TABLE s (a BIGINT) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json');\n"
        "INSERT INTO s SELECT COUNT(*) FROM t GROUP BY a;\n"
    )
    assert main(["check", str(wrong)]) == 2
    assert "wrong.sql:3:" in (printed := capsys.readouterr().err)
    assert 'table "s" takes new rows only, but the query updates its answer' in printed


def test_a_file_that_is_not_there_is_said_in_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", "/nowhere.sql"]) == 2
    assert capsys.readouterr().err == "/nowhere.sql: No such file or directory\n"


def test_explain_shows_a_plan_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]):
    assert main(["explain", QUICKSTART]) == 0
    text = capsys.readouterr().out
    assert "window aggregate tumble 10 s on ts by (product): COUNT(*), SUM(amount)" in text
    assert main(["explain", "--json", QUICKSTART]) == 0
    (job,) = json.loads(capsys.readouterr().out)
    assert [s["table"] for s in job["sinks"]] == ["revenue", "spending"]
    assert [s["mode"] for s in job["sinks"]] == ["append", "retract"]


def test_explain_says_that_rows_go_whole_where_late_ones_are_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    main(["explain", QUICKSTART])
    assert "exchange window_partial_1 to window_aggregate_1 by (product)" in capsys.readouterr().out
    monkeypatch.setenv("TAILRACE_TOPICS__LATE", "late")
    main(["explain", QUICKSTART])
    text = capsys.readouterr().out
    assert "exchange orders to window_partial_1 by (product)" in text
    assert "whole rows go to windows" in text


def test_wrong_settings_are_listed_before_anything_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Without a name of its topic no marker could be written."""
    monkeypatch.setenv("TAILRACE_TOPICS__MARKERS", "")
    monkeypatch.setenv("TAILRACE_TOPICS__PARTITIONS", "0")
    assert main(["run", QUICKSTART]) == 2
    text = capsys.readouterr().err
    assert "TAILRACE_TOPICS__MARKERS: " in text
    assert "TAILRACE_TOPICS__PARTITIONS: " in text


def test_mistakes_of_pipeline_and_settings_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "wrong.sql").write_text("INSERT INTO b SELECT m FROM a;")
    monkeypatch.setenv("TAILRACE_BATCH__TICK", "never")
    assert main(["run", str(tmp_path / "wrong.sql")]) == 2
    told = capsys.readouterr().err
    assert "wrong.sql:1:" in told
    assert 'TAILRACE_BATCH__TICK: "never" is no duration' in told


@pytest.mark.parametrize("command", ["run", "check", "explain", "test", "demo"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 6


def test_an_unknown_command_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["fly"])
    assert ended.value.code == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err


def test_run_lists_its_settings(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["run", "--settings"])
    assert "TAILRACE_CHECKPOINT=" in capsys.readouterr().out


def test_a_file_that_is_no_utf8_is_reported_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wrong = tmp_path / "wrong.sql"
    wrong.write_bytes("SET 'pipeline.name' = 'x';\n-- caf\u00e9\n".encode("latin-1"))
    for command in ("check", "explain"):
        assert main([command, str(wrong)]) == 2
        assert f"{wrong.name}:2:7: the file is not UTF-8" in capsys.readouterr().err


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    right = tmp_path / "right.sql"
    right.write_bytes("\ufeffCREATE TABLE t (a BIGINT) WITH ('connector' = 'datagen');\n".encode())
    assert main(["check", str(right)]) == 0, capsys.readouterr().err
