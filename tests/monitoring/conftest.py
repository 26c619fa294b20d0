"""One live service for all tests of this folder that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import Broker
from tests.monitoring.live import Live, live


@pytest.fixture(scope="module")
def watched(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service that ran under load and with faults, as Prometheus saw it."""
    with live(tmp_path_factory.mktemp("live"), kafka.bootstrap) as seen:
        yield seen
