"""A real Prometheus with the chart's alerts, which scrapes one service."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from service.host.machine import free_ports
from tests.monitoring.programs import program
from tests.monitoring.rules_file import ALERTS

NAMESPACE, JOB = "shop", "orders"
"""The labels that Kubernetes' discovery would give the target."""


class Sample(NamedTuple):
    """A sample of an instant query."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """Scrapes 127.0.0.1:`target` every two seconds while it is open, and keeps what it saw in `folder`."""

    def __init__(self, folder: Path, target: int) -> None:
        self._folder = folder
        self._port = free_ports(1)[0]
        self._log = folder / "log"
        scrape = {
            "job_name": JOB,
            "static_configs": [{"targets": [f"127.0.0.1:{target}"], "labels": {"namespace": NAMESPACE}}],
        }
        configuration = {
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [scrape],
        }
        folder.mkdir(parents=True)
        (folder / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 120
        while not self._ready():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, f"Prometheus is not ready:\n{self._log.read_text()}"
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(60)

    def ask(self, query: str, at: float | None = None) -> list[Sample]:
        """The answer of an instant query, at a time in seconds since the epoch or now."""
        asked = {"query": query} | ({} if at is None else {"time": f"{at:.3f}"})
        data = self._get("query", **asked)
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(each["metric"], float(each["value"][1])) for each in data["result"]]

    def value(self, query: str, at: float | None = None) -> float:
        """The one sample of an answer; 0 if there is none."""
        samples = self.ask(query, at)
        assert len(samples) <= 1, samples
        return samples[0].value if samples else 0.0

    def rules(self) -> dict[str, dict[str, Any]]:
        """Every alert as Prometheus has it, by name."""
        return {rule["name"]: rule for group in self._get("rules")["groups"] for rule in group["rules"]}

    def values_of(self, label: str) -> set[str]:
        """Every value that a label of our metrics had."""
        return set(self._get(f"label/{label}/values", **{"match[]": '{__name__=~"tailrace_.+"}'}))

    def _get(self, what: str, **asked: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urlencode(asked)}"
        try:
            with urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            with error:
                raise AssertionError(f"{asked}: {error.read().decode()}") from None

    def _ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5):
                return True
        except OSError:
            return False
