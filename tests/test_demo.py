"""The demo as a newcomer meets it: the status page first, then changes whose numbers read as people write them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.e2e

CHANGE = re.compile(r"(\+I|-U|\+U|-D)  (spending|revenue) +")
AMOUNT = re.compile(r"(?:spent|revenue)=(\S+)$")


@pytest.fixture(scope="module")
def demo() -> Iterator[subprocess.Popen[str]]:
    """A demo that ends by itself, after a time in which it also starts where the machine is busy."""
    command = [sys.executable, "-m", "service", "demo", "--seconds", "120"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        process.terminate()


def test_the_demo_serves_its_status_page_and_prints_changes(demo: subprocess.Popen[str]):
    assert demo.stdout is not None
    first = demo.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+/", first)
    assert address, first
    changes = [line.rstrip("\n") for line in demo.stdout if CHANGE.match(line)]
    kinds = {(found[1], found[2]) for line in changes if (found := CHANGE.match(line))}
    assert {("+I", "spending"), ("-U", "spending"), ("+U", "spending"), ("+I", "revenue")} <= kinds
    amounts = [found[1] for line in changes if (found := AMOUNT.search(line))]
    assert len(amounts) == len(changes)
    assert [amount for amount in amounts if not re.fullmatch(r"\d+\.\d\d", amount)] == []
    assert demo.wait(60) == 0
