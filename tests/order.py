"""The order in which test files run: those that compute beside those that wait, and of each kind the longest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SECONDS: Mapping[str, float] = {
    # Measured on two cores, beside other files.
    "tests/spark/test_secured.py": 140,
    "tests/spark/test_backfill.py": 130,
    "tests/spark/test_large_batches.py": 130,
    "tests/spark/test_object_store.py": 120,
    "tests/spark/test_rolling_forward.py": 120,
    "tests/spark/test_store_requests.py": 110,
    "tests/spark/test_kafka_source.py": 110,
    "tests/spark/test_too_large.py": 110,
    "tests/spark/test_executors.py": 100,
    "tests/operators/test_kernels.py": 100,
    "tests/spark/test_restarts.py": 100,
    "tests/spark/test_growth.py": 80,
    "tests/page/browser/test_looks.py": 80,
    "tests/spark/test_scratch.py": 80,
    "tests/spark/test_many_partitions.py": 80,
    "tests/spark/test_changed_query.py": 80,
    "tests/spark/test_placement.py": 70,
    "tests/spark/test_internals.py": 70,
    "tests/test_demo.py": 70,
    "tests/spark/test_drawn_values_killed.py": 70,
    "tests/spark/test_state_failures.py": 60,
    "tests/spark/test_replan.py": 60,
    "tests/monitoring/test_live.py": 60,
    "tests/spark/test_lookups.py": 60,
    "tests/kafka/test_broker_killed.py": 60,
    "tests/test_pipelines.py": 60,
    "tests/spark/test_pipelines_restarted.py": 60,
    "tests/spark/test_changed_bounds.py": 60,
    "tests/kafka/test_secured_broker.py": 50,
    "tests/setup/test_embedded_kafka.py": 50,
    "tests/spark/test_backfill_beside.py": 50,
    "tests/spark/test_leaderless_partition.py": 50,
    "tests/local/test_oracle_in_time.py": 50,
    "tests/spark/test_joins_equal_batch_queries.py": 40,
    "tests/spark/test_matched_topics.py": 40,
    "tests/page/browser/test_use.py": 40,
    "tests/spark/test_kept_logs.py": 40,
    "tests/kafka/test_exactly_once.py": 40,
    "tests/spark/test_avro.py": 40,
    "tests/spark/test_waits_for_tables.py": 40,
    "tests/local/test_oracle.py": 40,
    "tests/local/test_cuts.py": 40,
    "tests/operators/test_group_by.py": 30,
    "tests/operators/test_firing_aggregate.py": 30,
    "tests/formats/test_json_beside_others.py": 30,
    "tests/operators/test_retracting_top_n.py": 30,
}
"""How long a file takes that takes half a minute or more: what is not known to be long starts late."""

USUAL = {"unit": 1.0, "e2e": 10.0}
"""Seconds that another file of a kind takes."""


def starting_order(unit: Iterable[str], e2e: Iterable[str]) -> list[str]:
    """Return all files in the order in which they start.

    Unit tests compute and e2e tests wait half of their time, so that a mixture of both leaves no core idle. Both kinds
    come to their end at the same time, with short files, so that none runs alone there.

    >>> starting_order(["a.py", "b.py"], ["tests/spark/test_growth.py", "c.py"])
    ['a.py', 'tests/spark/test_growth.py', 'b.py', 'c.py']
    """
    starts: dict[str, float] = {}
    for kind, files in (("unit", unit), ("e2e", e2e)):
        seconds = {file: SECONDS.get(file, USUAL[kind]) for file in files}
        before, all_of_them = 0.0, sum(seconds.values())
        for file in sorted(seconds, key=lambda file: -seconds[file]):
            starts[file] = before / all_of_them
            before += seconds[file]
    return sorted(starts, key=lambda file: starts[file])
