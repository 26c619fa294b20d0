"""How the exit of the driver's JVM is noticed."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from service.spark.driver.jvm import JvmFailed
from service.spark.driver.jvm_exit import exit_noticed, has_exited


def jvm(code: str) -> Any:
    """A JVM whose process runs `code` of Python."""
    return SimpleNamespace(process=subprocess.Popen([sys.executable, "-c", code]))


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111)])
def test_a_call_into_a_jvm_that_has_exited_says_so(error: Exception):
    exiting = jvm("import time; time.sleep(0.2)")  # its sockets close before it has exited
    with pytest.raises(JvmFailed, match=r"^the JVM has exited; restart the service") as caught, exit_noticed(exiting):
        raise error
    assert caught.value.__cause__ is error


def test_an_error_of_a_jvm_that_runs_stays_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("service.spark.driver.jvm_exit._SOCKETS_CLOSE_BEFORE", 0.01)
    running = jvm("import time; time.sleep(60)")
    try:
        with pytest.raises(Py4JError, match=r"^no such method$"), exit_noticed(running):
            raise Py4JError("no such method")
        assert not has_exited(running)
    finally:
        running.process.kill()
        running.process.wait()


def test_another_error_beside_a_jvm_that_has_exited_stays_as_it_is():
    exited = jvm("")
    exited.process.wait()
    with pytest.raises(ValueError, match=r"^no number$"), exit_noticed(exited):
        raise ValueError("no number")
    assert has_exited(exited)
