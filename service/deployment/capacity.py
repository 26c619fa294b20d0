"""The number of concurrent tasks of a job, and their memory, as far as Spark's settings say."""

from __future__ import annotations

import re

from service.host import machine
from service.settings import Spark

_LOCAL = re.compile(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]")
"""`local[cores,attempts]`: concurrent tasks, and attempts per task."""

_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
"""`local-cluster[executors,cores,MiB]`: executors on this machine, whose number never changes; cores and MiB of
each."""

_UNITS = {"": 1, "k": 10, "m": 20, "g": 30, "t": 40}


def memory_of_tasks(spark: Spark) -> int:
    """Return the bytes of memory of the machines that run the tasks, as far as it is known here."""
    if spark.master.startswith("local") and not spark.master.startswith("local-cluster"):
        return machine.memory()
    count = spark.executor.instances
    cluster = local_cluster(spark.master)
    if cluster is not None:
        count = cluster[0]
    found = [_bytes_of(text) for text in (spark.executor.memory, spark.executor.memory_overhead)]
    return max(count, 1) * sum(found) or machine.memory()


def _bytes_of(text: str) -> int:
    """The bytes of a size as JVM options write it, 512m or 2g; 0 for any other text."""
    size = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    return 0 if size is None else int(size[1]) << (_UNITS[size[2]] if size[2] else 0)


def tasks_of(spark: Spark) -> int:
    """Return how many tasks a level has: as many as run concurrently, or fewer if the settings say so.

    More tasks would serve narrower ranges of the same keys, one after the other, and each costs a batch its own
    statements.
    """
    most = _tasks_at_a_time(spark)
    wanted = spark.partitions or most or spark.executor.instances * spark.executor.cores
    return wanted if most is None else min(wanted, most)


def _tasks_at_a_time(spark: Spark) -> int | None:
    """The cores of all executors; None if no setting says how many Spark gets."""
    if spark.master == "local":
        return 1
    if local := _LOCAL.fullmatch(spark.master):
        return machine.cores() if local[1] == "*" else int(local[1])
    if cluster := local_cluster(spark.master):
        executors, cores = cluster
        return executors * cores
    if not spark.master.startswith("k8s://") or spark.conf.get("spark.dynamicAllocation.enabled") == "true":
        return None
    instances = spark.conf.get("spark.executor.instances", spark.executor.instances)
    return int(instances) * int(spark.conf.get("spark.executor.cores", spark.executor.cores))


def local_cluster(master: str) -> tuple[int, int] | None:
    """Return the number of executors of a cluster that Spark makes on this machine, and the cores of each."""
    found = _LOCAL_CLUSTER.fullmatch(master)
    return (int(found[1]), int(found[2])) if found else None
