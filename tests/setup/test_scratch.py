"""The folder of a run goes with it, and where it could not, with the next run on the same disk."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.host.guard import Guard
from service.host.machine import MachineError
from service.host.scratch import LOCK, scratch

ROOT = Path(__file__).parents[2]

RUN = """
import sys
from pathlib import Path
from service.host.scratch import scratch
with scratch(sys.argv[1]) as folder:
    (folder / "blocks" / "deep").mkdir(parents=True)
    (folder / "blocks" / "deep" / "block").write_text("rows")
    (folder / "link").symlink_to(sys.argv[1])
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def run(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has a folder in `place`, until its standard input closes."""
    command = [sys.executable, "-c", RUN, str(place)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().rstrip())


@contextmanager
def after_the_dead_were_looked_for(place: Path) -> Iterator[Path]:
    """A folder of this process, when all that it does beside is done."""
    with scratch(str(place)) as folder:
        for thread in threading.enumerate():
            if thread.name == "dead-runs":
                thread.join()
        yield folder


def test_a_folder_lives_as_long_as_its_run(tmp_path: Path):
    place = tmp_path / "not" / "there"
    with scratch(str(place)) as folder:
        assert folder.parent == place
        (folder / "state").mkdir()
    assert list(place.iterdir()) == []


def test_the_next_run_removes_what_a_killed_one_has_left(tmp_path: Path):
    with run(tmp_path) as (process, left):
        process.send_signal(signal.SIGKILL)
    assert (left / "blocks" / "deep" / "block").exists()
    with after_the_dead_were_looked_for(tmp_path) as folder:
        assert set(tmp_path.iterdir()) == {folder}


def test_what_was_begun_to_be_removed_is_removed_by_the_one_after(tmp_path: Path):
    with run(tmp_path) as (process, left):
        process.send_signal(signal.SIGKILL)
    (left / "file").unlink()
    assert (left / LOCK).exists()
    with after_the_dead_were_looked_for(tmp_path) as folder:
        assert set(tmp_path.iterdir()) == {folder}


def test_the_folder_of_a_run_that_lives_is_left_alone(tmp_path: Path):
    with run(tmp_path) as (_, other), after_the_dead_were_looked_for(tmp_path):
        assert (other / "blocks" / "deep" / "block").exists()
    assert not other.exists()


def test_what_no_driver_has_made_is_left_alone(tmp_path: Path):
    of_an_executor = tmp_path / "tailrace-abc" / "r1"
    of_somebody = tmp_path / "other" / LOCK
    of_an_executor.mkdir(parents=True)
    of_somebody.parent.mkdir()
    of_somebody.touch()
    with after_the_dead_were_looked_for(tmp_path):
        assert of_an_executor.exists()
        assert of_somebody.exists()


def test_a_guard_removes_the_lock_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bin").mkdir()
    seen = tmp_path / "seen"
    remove = tmp_path / "bin" / "rm"
    remove.write_text(f'#!/bin/sh\necho "$@" >>{seen}\nexit 1\n')
    remove.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (LOCK, "a", "b"):
        (folder / name).touch()
    with subprocess.Popen(["sleep", "60"]) as guarded:
        guard = Guard(guarded.pid, folder)
        assert guard._shell.stdin is not None
        guard._shell.stdin.close()  # as it closes when this process ends
        guard._shell.wait(30)
    assert seen.read_text() == f"-rf {folder}/a {folder}/b\n", "and not all at once, where some could not be removed"


def test_a_place_that_cannot_be_written_is_reported_in_a_sentence(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="file cannot be written"), scratch(str(tmp_path / "file")):
        pass
