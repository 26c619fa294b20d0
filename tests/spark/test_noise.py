"""Of what the JVM says everything is told but what nobody needs."""

from __future__ import annotations

import pytest

from service.spark.driver.log_filter import LISTENER, LogFilter

FRAMES = ["\tat java.base/sun.nio.ch.ServerSocketChannelImpl.accept(ServerSocketChannelImpl.java:399)", "\t... 12 more"]
ERROR = "2026-01-02T03:04:05.678 ERROR Utils: Uncaught exception in thread x"


def told(*lines: str) -> list[str]:
    noise = LogFilter()
    return [line for line in lines if not noise.hides(line)]


@pytest.mark.parametrize(
    "thrown",
    [
        "java.nio.channels.ClosedByInterruptException",
        "java.nio.channels.AsynchronousCloseException",
        "java.io.IOException: Broken pipe",
        "java.net.SocketException: Connection reset",
    ],
)
def test_a_connection_that_was_cut_off_is_not_told_and_what_comes_next_is(thrown: str):
    cause = ["Caused by: java.nio.channels.ClosedChannelException", *FRAMES]
    assert told(ERROR, *FRAMES, LISTENER + thrown, *FRAMES, *cause, ERROR, *FRAMES) == [ERROR, *FRAMES] * 2


def test_two_that_are_cut_off_at_once_are_not_told_though_their_words_are_mixed():
    thrown = "java.nio.channels.AsynchronousCloseException"
    assert told(LISTENER * 2 + thrown, *FRAMES, thrown, *FRAMES, ERROR, *FRAMES) == [ERROR, *FRAMES]
    assert told(thrown, *FRAMES) == [thrown, *FRAMES]
    assert told(LISTENER + thrown, *FRAMES, thrown, *FRAMES) == [thrown, *FRAMES]


@pytest.mark.parametrize(
    "line",
    [
        LISTENER + "java.lang.NullPointerException: x",
        LISTENER + "java.io.IOException: No space left on device",
        'Exception in thread "main" java.nio.channels.ClosedByInterruptException',
    ],
)
def test_any_other_exception_is_told_with_its_frames(line: str):
    assert told(line, *FRAMES) == [line, *FRAMES]


def test_how_the_jvm_was_started_is_not_told():
    assert told("WARNING: Using incubator modules: jdk.incubator.vector", "Setting default log level to x") == []
