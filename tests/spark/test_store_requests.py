"""What a batch asks of an object store: each request is for something, and there is a bound for each.

Requests are paid for one by one, and each takes some ten milliseconds. Those of a batch are recognized by the numbers
of batches in the names of files.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.sweeper import EVERY
from service.host.machine import free_ports
from service.spark.query.shard_state import version_before
from tests.brokers import Broker, MakeTopic
from tests.spark.fake_gcs import fake_gcs
from tests.spark.fake_s3 import fake_s3, s3_settings
from tests.spark.service_process import QUICK, ServiceProcess
from tests.spark.store_requests import RequestLog, StoreRequest
from tests.spark.topics import feed

TASKS = 2
"""Shards of the level."""

FIRST = 3
"""The first batch that is looked at: those before it are of the start, which looks for more."""

BUSY = 5
RETAINED = 4
"""Batches that Spark's logs keep here, so that it removes an older one in each batch, as it does after a hundred."""

OF_STATE, OF_VERSIONS = "tailrace/state", "tailrace/versions"

Purpose = tuple[str, str, str]
"""Whose client asks, what kind of request, and of what."""

LOGGED = {
    # Spark looks whether the batch is in its log; we look again before we put it there.
    ("spark", "HEAD", "offsets of this batch"): 2,
    ("spark", "PUT", "offsets of this batch"): 1,
    ("spark", "HEAD", "commits of this batch"): 2,
    ("spark", "PUT", "commits of this batch"): 1,
}
NOTED = {
    # The driver reads how Spark has cut the batch, and notes the version unless another driver has done the batch.
    ("tailrace", "HEAD", "offsets of this batch"): 1,
    ("tailrace", "GET", "offsets of this batch"): 1,
    ("tailrace", "HEAD", "commits of this batch"): 1,
    ("tailrace", "PUT", f"{OF_VERSIONS} of this batch"): 1,
}
READ = {
    # A task reads where the batch before has left its shard; its worker remembers that for its other tasks.
    ("tailrace", "HEAD", f"{OF_VERSIONS} of the batch before"): TASKS,
    ("tailrace", "GET", f"{OF_VERSIONS} of the batch before"): TASKS,
}
WRITTEN = {
    # A task whose shard has changed writes one file: its new blocks and its manifest.
    ("tailrace", "PUT", f"{OF_STATE} of this batch"): TASKS,
}
REMOVED = {
    # Spark looks for what is too old for its logs, removes it, and sees whether the folder is still one. That is done
    # beside the batches: what was to be in one may be in the next.
    **{("spark", kind, f"{log} of old batches"): 2 for log in ("offsets", "commits") for kind in ("HEAD", "DELETE")},
    **{("spark", "LIST", log): 2 for log in ("offsets", "commits")},
}
OF_THE_CLOCK = Counter({**LOGGED, **NOTED, **READ, **REMOVED})
OF_ROWS = OF_THE_CLOCK + Counter(WRITTEN)

SWEEP = 2 + 1 + 1 + 2 + 2 * TASKS
"""Requests of a sweep, beside those that remove: it lists versions twice, state and answers, and reads a version and
its manifests."""

CHORES = 5
"""Requests beside each sweep: what the driver notes of the offsets that tell of batches."""

A_FILE = 3
"""Requests that remove a file: Arrow looks whether it is one, removes it, and makes sure that the folder stays."""


class Store(NamedTuple):
    """A store that is not real: where the checkpoint is, Spark's settings, and the requests so far. `kinds` are the
    requests of a batch that received only the clock, by kind; `by_batch` says whether it is known what each is for."""

    checkpoint: str
    conf: Mapping[str, str]
    requests: RequestLog
    kinds: Mapping[str, int]
    by_batch: bool


OF_S3 = {"PUT": 3, "LIST": 2, "DELETE": 2, "HEAD": 8 + TASKS, "GET": 1 + TASKS}
OF_GCS = {"PUT": 3, "LIST": 6, "DELETE": 2, "HEAD": 30, "GET": 1 + TASKS}
"""Hadoop's client of this store looks for the folders above a file, and whether a folder has its name."""


@contextmanager
def s3(folder: Path) -> Iterator[Store]:
    requests = RequestLog()
    with fake_s3(requests) as (address, _):
        yield Store("s3a://bucket/folder", s3_settings(address), requests, OF_S3, by_batch=True)


@contextmanager
def gcs(folder: Path) -> Iterator[Store]:
    with fake_gcs(folder) as running:
        yield Store("gs://bucket/folder", running.settings, running.store.requests, OF_GCS, by_batch=False)


class Batches:
    """What was asked, by the batch in which it was."""

    def __init__(self, requests: Iterable[StoreRequest]) -> None:
        self.of: dict[int, Counter[Purpose]] = {}
        number = -1
        for each in requests:
            planned = re.search(r"/offsets/(\d+)$", each.name)
            if planned is not None and each.by_spark and int(planned[1]) > number:
                number = int(planned[1])
            self.of.setdefault(number, Counter())[_purpose(each, number)] += 1


def _purpose(request: StoreRequest, batch: int) -> Purpose:
    by = "spark" if request.by_spark else "tailrace"
    folder, _, file = request.name.partition("/totals/")[2].rpartition("/")
    found = re.match(r"\d+", file)
    if found is None or request.kind == "LIST":
        return by, request.kind, folder or file
    age = {0: "this batch", 1: "the batch before"}.get(batch - int(found[0]), "old batches")
    return by, request.kind, f"{folder} of {age}"


def by_kind(asked: Mapping[Purpose, int]) -> Counter[str]:
    found = Counter[str]()
    for (_, kind, _), count in asked.items():
        found[kind] += count
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "store",
    [s3, pytest.param(gcs, marks=pytest.mark.skipif(shutil.which("openssl") is None, reason="it makes a certificate"))],
)
def test_each_request_of_a_batch_is_for_something_and_a_batch_that_received_only_the_clock_writes_no_state(
    store: Callable[[Path], AbstractContextManager[Store]],
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
    tmp_path: Path,
) -> None:
    orders, totals = make_topic("orders"), make_topic("totals", cleanup_policy="compact")
    query = f"""
        SET 'pipeline.name' = 'totals';
        CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{orders}',
          'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
        CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
          WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
        INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
    """
    with store(tmp_path) as real:
        conf = {**QUICK, **real.conf, "spark.sql.streaming.minBatchesToRetain": str(RETAINED)}
        running = service(
            query,
            kafka.bootstrap,
            CHECKPOINT=real.checkpoint,
            SPARK__CONF=json.dumps(conf),
            SPARK__PARTITIONS=str(TASKS),
            BATCH__TICK="200ms",
            HTTP__PORT=str(free_ports(1)[0]),
        )

        def done() -> int:
            return max(Batches(real.requests.all()).of, default=0) - 1

        running.start()
        running.until("it has begun", lambda: done() >= FIRST)
        for number in range(BUSY):
            feed(kafka.bootstrap, orders, [(i % 2, {"name": f"n{i}", "amount": number}) for i in range(200)])
            before = done()  # a batch that is planned from now on reads the last of them
            running.until("the rows are read", lambda before=before: done() > before + 1)  # type: ignore[misc]
        quiet, transactions = done(), committed(running)
        running.until("the checkpoint was swept", lambda: done() >= max(EVERY + 2, quiet + 4))
        markers = committed(running) - transactions
        last = done()
        found = Batches(real.requests.all())
        running.terminate()
        assert running.wait() == 0
    assert markers <= last - quiet + 1, "one transaction a batch, whatever the number of tasks: the marker of the first"
    busy = {int(str(event["batch"])) for event in running.events() if event["event"] == "batch"}
    # A sweep lists versions before it lists state, and the next batches may begin before it has removed what it found.
    swept = {
        number
        for number, asked in found.of.items()
        if any(each[0] == "tailrace" and each[1] in ("LIST", "DELETE") and asked[each] for each in asked)
    }
    steady = set(range(FIRST, last)) - swept - {number + 1 for number in swept}
    assert len(busy & steady) >= BUSY - 2
    for number in steady:
        asked = found.of[number]
        assert asked["tailrace", "PUT", f"{OF_STATE} of this batch"] <= (TASKS if number in busy else 0)
        if real.by_batch:
            assert asked <= (OF_ROWS if number in busy else OF_THE_CLOCK), f"batch {number}: {asked}"
    idle = sorted(steady - busy)
    kinds = sum((by_kind(found.of[number]) for number in idle), Counter[str]())
    for kind, count in kinds.items():
        # What is done beside the batches may have been begun before the first of them.
        assert count <= (len(idle) + 1) * real.kinds.get(kind, 0), kinds
    assert swept
    beside = Counter[Purpose]()
    for number in set(range(FIRST, last)) - steady:
        beside += found.of[number] - OF_ROWS
    files = sum(count for (by, kind, _), count in beside.items() if (by, kind) == ("tailrace", "DELETE"))
    assert 0 < files <= EVERY + len(busy) * TASKS, "each file goes once"
    if real.by_batch:
        assert beside.total() <= len(swept) * (SWEEP + CHORES) + A_FILE * files, beside


def committed(running: ServiceProcess) -> int:
    """The transactions that tasks have committed so far."""
    found = re.search(r'\ntailrace_transactions_total\{.*outcome="committed".*\} (\S+)', running.ask("/metrics")[1])
    return 0 if found is None else int(float(found[1]))


def test_a_worker_reads_the_version_that_a_batch_starts_from_once_for_all_its_tasks() -> None:
    with fake_s3(requests := RequestLog()) as (address, held):
        held["bucket/folder/tailrace/versions/000000006.json"] = b"{}"
        held["bucket/folder/tailrace/versions/000000007.json"] = b"{}"
        hadoop = {name.removeprefix("spark.hadoop."): value for name, value in s3_settings(address).items()}
        files = CheckpointAddress("s3a://bucket/folder", hadoop).open()
        for run, batch in (("r1", 7), ("r1", 7), ("r1", 8), ("r2", 8), ("r2", 8)):
            job: Any = SimpleNamespace(spec=SimpleNamespace(run=run, program=SimpleNamespace(name="totals")))
            version_before(job, files, batch)
    read = [each.name.rpartition("/")[2] for each in requests.all() if each.kind == "GET"]
    assert read == ["000000006.json", "000000007.json", "000000007.json"]
