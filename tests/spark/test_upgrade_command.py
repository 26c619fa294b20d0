"""`tailrace upgrade --from` from its arguments to its exit code: what it does to a checkpoint, and when.

The backfill itself is in the checkpoint already; a stand-in for the service says when all is read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operators.sql import Sql
from service.checkpoint.files import FolderFiles
from service.checkpoint.small_files import QUERY, SmallFiles
from service.cli import main
from service.commands import upgrade_backfill
from service.deployment.backfill import FOLDER, BackfillRange, BackfillRecord
from service.deployment.deployment import Deployment
from service.host.checkpoint_lock import CheckpointInUse, CheckpointLock
from tests.spark import test_upgrades as upgrades
from tests.spark.test_taking_over import BATCHES, FILLED, FOR_EVER, Backfilled, text_of
from tests.spark.test_upgrades import program_of

sql = upgrades.sql
CHANGED = text_of(FILLED["another aggregate"])
ENDS = {"orders": {"0": 300}, "users": {"0": 300}}


class Command:
    """The command on a checkpoint whose new operators are backfilled; `runs` is what the service does meanwhile."""

    def __init__(self, folder: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
        self.backfilled = Backfilled(folder, sql, CHANGED)
        self.checkpoint = folder / "going"
        self.runs: Callable[[Deployment], int] = lambda deployment: 0
        self._folder = folder
        self._file = folder / "going.sql"
        monkeypatch.setattr(
            upgrade_backfill,
            "plan_deployment",
            lambda program, settings: Deployment(
                program=program,
                settings=settings,
                source_addresses={},
                output_addresses={},
                side=None,
                bounded=frozenset(),
                partitions=2,
            ),
        )
        monkeypatch.setattr(upgrade_backfill, "backfill_range", lambda *_: BackfillRange({0: "{}"}, ("a note",), ()))
        monkeypatch.setattr(upgrade_backfill, "Service", self._service)

    def _service(self, programs: Any, settings: Any, observer: Any, *, plan: Any, place: Any) -> Any:
        assert [place(each, settings) for each in programs] == [
            f"{self._folder / each.name}/{FOLDER}" for each in programs
        ]
        assert all(each.meaning == self.backfilled.part.program.meaning for each in programs)
        return SimpleNamespace(run=lambda: max(self.runs(plan(each, settings)) for each in programs))

    def __call__(self, *arguments: str, text: str = CHANGED) -> int:
        self._file.write_text(f"SET 'pipeline.name' = 'going';\n{text}")
        return main(["upgrade", *arguments, str(self._file), str(self._folder)])

    def taken(self, job: str = "going") -> bool:
        """Whether the checkpoint is that of the changed query."""
        known = SmallFiles(FolderFiles(str(self._folder / job))).read(QUERY)["meaning"]
        after, before = (json.loads(json.dumps(program_of(text).meaning.to_json())) for text in (CHANGED, FOR_EVER))
        assert known in (after, before)
        return bool(known == after)


@pytest.fixture
def command(tmp_path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, sql, monkeypatch)


def read_all(deployment: Deployment) -> bool:
    """Whether the backfill is reported to be at its end, where it has read what the first query has."""
    assert deployment.ends is not None
    return deployment.ends.final({source.id: ENDS for source in deployment.program.sources})


def test_it_takes_over_when_all_is_read_and_the_running_query_is_stopped(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as running:
        running.enter_context(CheckpointLock(str(command.checkpoint)))

        def runs(deployment: Deployment) -> int:
            assert deployment.checkpoint == str(command.checkpoint / FOLDER)
            assert not read_all(deployment), "the first query runs"
            running.close()
            assert read_all(deployment)
            with pytest.raises(CheckpointInUse):
                CheckpointLock(str(command.checkpoint)).__enter__()
            assert not command.taken()
            return 0

        command.runs = runs
        assert command("--from", "earliest") == 0
    assert command.taken()
    assert f"the changed query has taken over, from batch {BATCHES} on" in capsys.readouterr().out
    assert not (command.checkpoint / FOLDER).exists()
    with CheckpointLock(str(command.checkpoint)):
        command.backfilled.going.start(CHANGED)
        assert any(command.backfilled.going.do(2).values())
    assert command("--from", "earliest") == 0
    assert "the checkpoint belongs to this query" in capsys.readouterr().out


def test_what_is_stopped_on_the_way_leaves_the_query_and_goes_on_from_where_it_began(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--from", "earliest") == 1  # SIGTERM: the service ends well, but has not read all
    assert "run the same command to resume" in capsys.readouterr().out
    assert not command.taken()
    monkeypatch.setattr(upgrade_backfill, "backfill_range", lambda *_: BackfillRange({0: '{"later": {}}'}, (), ()))

    def runs(deployment: Deployment) -> int:
        assert deployment.starts == {0: "{}"}
        assert read_all(deployment)
        return 0

    command.runs = runs
    assert command("--from", "earliest") == 0
    assert command.taken()


TWO_JOBS = CHANGED + CHANGED[CHANGED.index("EXECUTE STATEMENT SET") :]


def runs_to_the_end(deployment: Deployment) -> int:
    """Be a service that reads all."""
    assert read_all(deployment)
    return 0


def test_all_jobs_of_a_pipeline_are_backfilled_in_one_service(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(command.checkpoint, command.checkpoint.with_name("going_2"))
    assert command("--check", "--from", "earliest", text=TWO_JOBS) == 0
    command.runs = runs_to_the_end
    assert command("--stopped", "--from", "earliest", text=TWO_JOBS) == 0
    assert command.taken("going")
    assert command.taken("going_2")
    assert capsys.readouterr().out.count("has taken over") == 2


def test_a_job_that_was_left_when_the_command_was_killed_is_backfilled_by_the_next(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(command.checkpoint, command.checkpoint.with_name("going_2"))
    command.runs = runs_to_the_end
    assert command("--stopped", "--from", "earliest", "--job", "going_2", text=TWO_JOBS) == 0
    assert not command.taken("going")
    assert command("--stopped", "--from", "earliest", text=TWO_JOBS) == 0
    assert command.taken("going")
    printed = capsys.readouterr().out
    assert "going_2: the checkpoint belongs to this query" in printed
    assert "going: the changed query has taken over" in printed


def test_a_job_that_is_refused_keeps_the_others_from_being_backfilled(command: Command) -> None:
    shutil.copytree(command.checkpoint, command.checkpoint.with_name("going_2"))
    SmallFiles(FolderFiles(str(command.checkpoint / FOLDER))).write("backfill", {"of": "?", "part": "?", "starts": {}})
    command.runs = runs_to_the_end
    assert command("--from", "earliest", text=TWO_JOBS) == 2
    assert not command.taken("going_2")


def test_where_nothing_is_to_be_backfilled_it_ends_well_as_often_as_it_is_started(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may stand in front of `run` for ever: Kafka is not asked, no JVM is started, nothing is changed."""
    for asked in ("plan_deployment", "backfill_range", "Service"):
        monkeypatch.setattr(upgrade_backfill, asked, lambda *_, **__: pytest.fail("asked"))
    as_before = sorted(path.name for path in command.checkpoint.rglob("*"))
    behind = FOR_EVER.replace("totals SELECT u, SUM(amount)", "totals SELECT u, SUM(amount) * 2 + 1")
    for text, printed in (
        (FOR_EVER, "the checkpoint belongs to this query"),
        (behind, "nothing is new"),
        (FOR_EVER.replace("EXECUTE", "SET 'pipeline.name' = 'other';\nEXECUTE"), "no batch is done"),
    ):
        for _ in range(2):
            assert command("--stopped", "--from", "earliest", text=text) == 0
            assert printed in capsys.readouterr().out
    assert sorted(path.name for path in command.checkpoint.rglob("*")) == as_before


def test_a_job_that_is_not_there_is_refused(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--from", "earliest", "--job", "none") == 2
    assert 'has no job "none"\n  hint:   pass --job with one of going' in capsys.readouterr().err


def test_a_batch_that_is_planned_and_not_done_is_the_first_querys(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    command.backfilled.going.files.put(f"offsets/{BATCHES}", [b'v1\n{}\n{"orders":{"0":400}}\n-\n-'])
    assert command("--from", "earliest") == 1
    assert f"batch {BATCHES} was planned by the query before and is not done" in capsys.readouterr().out
    assert not command.taken()
    with CheckpointLock(str(command.checkpoint)):
        pass  # it may run again


def test_the_backfill_of_another_query_is_in_the_way_until_it_is_discarded(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    other = text_of(FILLED["another window"])
    assert command("--from", "earliest") == 1
    assert command("--from", "earliest", text=other) == 2
    assert "holds the backfill of another query" in capsys.readouterr().out
    assert command("--discard", text=other) == 0
    assert not (command.checkpoint / FOLDER).exists()
    assert BackfillRecord.read(command.backfilled.backfill.files) is None


def test_checking_changes_nothing(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in command.checkpoint.rglob("*"))
    assert command("--check", "--from", "2024-05-01T00:00:00Z") == 0
    printed = capsys.readouterr().out
    assert "a note" in printed
    assert "it can be backfilled from there" in printed
    assert "totals, cities, best, minutes is not backfilled; its changes are those of the new query" in printed
    assert command("--check") == 2
    assert "new operators can be backfilled" in capsys.readouterr().out
    assert sorted(path.name for path in command.checkpoint.rglob("*")) == before


def test_what_is_in_the_way_of_any_backfill_is_reported_with_the_way_out(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--from", "earliest", text=CHANGED.replace("'topic' = 'totals'", "'topic' = 'sums'")) == 2
    printed = capsys.readouterr().out
    assert "topic was totals and is sums" in printed
    assert "hint:   put the new part into a job of its own" in printed
    assert not command.taken()


@pytest.mark.parametrize("arguments", [(), ("--from", "yesterday")])
def test_what_to_do_is_reported(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["upgrade", *arguments, str(tmp_path / "none.sql")])
    assert ended.value.code == 2
