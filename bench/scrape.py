"""What a running service says of itself at /metrics."""

from __future__ import annotations

import urllib.request
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Batches(NamedTuple):
    """How many batches have run, and the seconds that they took in all."""

    done: int
    seconds: float


class Scrape:
    """Asks the service that listens at a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    def total(self, name: str) -> float:
        """The sum of all samples of that name; 0 where there is none."""
        return total(self._text(), name)

    def batches(self) -> Batches:
        """The batches since the service was started."""
        text, name = self._text(), "tailrace_batch_duration_seconds"
        return Batches(int(total(text, f"{name}_count")), total(text, f"{name}_sum"))

    def _text(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())


def total(text: str, name: str) -> float:
    """The sum of the samples of that name in a text of metrics."""
    families = text_string_to_metric_families(text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)
