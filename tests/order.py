"""The order in which test files run side by side."""

from __future__ import annotations

from collections.abc import Mapping

SECONDS = {
    "tests/operators/test_kernels.py": 120,
    "tests/local/test_cuts.py": 90,
    "tests/spark/test_growth.py": 180,
    "tests/chaos/test_kills.py": 180,
    "tests/spark/test_rolling_forward.py": 90,
    "tests/spark/test_backfill.py": 90,
    "tests/spark/test_restarts.py": 90,
    "tests/spark/test_workers_killed.py": 90,
    "tests/spark/test_executors.py": 90,
    "tests/monitoring/test_live.py": 90,
    "tests/chaos/test_streams.py": 90,
    "tests/spark/test_secured.py": 60,
    "tests/spark/test_changed_query.py": 60,
}
"""About how long the longest files take: they start before others of their kind, so that none runs alone at the end."""

OTHERS = {"e2e": 20, "unit": 2}
"""About how long a file takes that is not one of them, by kind."""


def turns(kinds: Mapping[str, str]) -> dict[str, float]:
    """Return the turn of each file: which part of the time of its kind has passed before.

    Files of both kinds take turns, so that some processes compute in unit tests while others wait in an e2e test, from
    the first file to the last.
    """
    found: dict[str, float] = {}
    for kind, usual in OTHERS.items():
        files = sorted((f for f in kinds if kinds[f] == kind), key=lambda f: -SECONDS.get(f, usual))
        seconds = [SECONDS.get(file, usual) for file in files]
        found |= {file: sum(seconds[:at]) / sum(seconds) for at, file in enumerate(files)}
    return found
