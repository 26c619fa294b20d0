"""Of what the JVM says everything is told but what nobody needs."""

from __future__ import annotations

import pytest

from service.spark.driver.log_filter import is_noise


@pytest.mark.parametrize(
    "line", ["WARNING: Using incubator modules: jdk.incubator.vector", "Setting default log level to x"]
)
def test_how_the_jvm_was_started_is_not_told(line: str) -> None:
    assert is_noise(line)


@pytest.mark.parametrize(
    "line",
    [
        'Exception in thread "main" java.nio.channels.ClosedByInterruptException',
        "\tat java.base/sun.nio.ch.ServerSocketChannelImpl.accept(ServerSocketChannelImpl.java:399)",
        "2026-01-02T03:04:05.678 ERROR Utils: Uncaught exception in thread x",
    ],
)
def test_anything_else_is_told(line: str) -> None:
    assert not is_noise(line)
