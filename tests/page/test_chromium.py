"""How the tests of the page come by a browser, or say what is missing: they are never left out in silence."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.page.browser.chromium import PACKAGES, NoChromium, chromium

Pretend = Callable[..., list[list[str]]]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """A machine with some programs on it, and the commands that it was given: an installation brings the browser."""

    def machine(*programs: str, root: bool, fails: bool = False) -> list[list[str]]:
        there, commands = set(programs), []

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            if not fails and "install" in command:
                there.add("chromium")
            return subprocess.CompletedProcess(command, int(fails), "", "E: no such package")

        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
        monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr(subprocess, "run", run)
        return commands

    return machine


def test_a_browser_that_is_there_is_taken(pretend: Pretend):
    commands = pretend("google-chrome", "apt-get", root=True)
    assert (chromium(), commands) == ("/usr/bin/google-chrome", [])


def test_on_a_fresh_debian_root_installs_it(pretend: Pretend):
    commands = pretend("apt-get", root=True)
    assert chromium() == "/usr/bin/chromium"
    assert [command[2] for command in commands] == ["update", "install"]
    assert set(PACKAGES) <= set(commands[1])


@pytest.mark.parametrize(("programs", "root"), [((), True), (("apt-get",), False)], ids=["no apt-get", "not root"])
def test_where_it_cannot_be_installed_the_test_says_what_to_do(pretend: Pretend, programs: tuple[str, ...], root: bool):
    commands = pretend(*programs, root=root)
    with pytest.raises(NoChromium, match="apt-get install chromium fonts-dejavu-core"):
        chromium()
    assert commands == []


def test_an_installation_that_fails_says_why(pretend: Pretend):
    pretend("apt-get", root=True, fails=True)
    with pytest.raises(NoChromium, match="no such package"):
        chromium()
