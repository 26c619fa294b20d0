"""The demo as a newcomer meets it: the status page first, then changes whose numbers read as people write them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.e2e

CHANGE = re.compile(r"(\+I|-U|\+U|-D)  (spending|revenue) +")
AMOUNT = re.compile(r"(?:spent|revenue)=(\S+)$")


EXPECTED = {("+I", "spending"), ("-U", "spending"), ("+U", "spending"), ("+I", "revenue")}
CHANGES = 200
"""The kinds of changes of each table, and how many changes to look at."""


@contextmanager
def demo(seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A demo that ends by itself after so many seconds."""
    command = [sys.executable, "-u", "-m", "service", "demo", "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        process.terminate()


def test_the_demo_serves_its_status_page_and_prints_changes_until_ctrl_c():
    with demo(300) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", first)
        assert address, first
        kinds, changes = set(), []
        for line in process.stdout:
            if found := CHANGE.match(line):
                kinds.add((found[1], found[2]))
                changes.append(line.rstrip("\n"))
            if kinds >= EXPECTED and len(changes) >= CHANGES:
                break
        process.send_signal(signal.SIGINT)
        assert "The demo has ended" in process.stdout.read()
        assert process.wait(60) == 0
    assert kinds >= EXPECTED
    amounts = [found[1] for line in changes if (found := AMOUNT.search(line))]
    assert len(amounts) == len(changes)
    assert [amount for amount in amounts if not re.fullmatch(r"\d+\.\d\d", amount)] == []


def test_the_demo_ends_after_the_seconds_that_were_asked_for():
    with demo(0.1) as process:
        assert process.stdout is not None
        assert "The demo has ended" in process.stdout.read()
        assert process.wait(60) == 0
