"""A checkpoint that the service has left, with Spark's logs of offsets and batches, goes on in versions to come.

Each archive is what the service of a format had in its folder after the first half of RECORDS, and was then stopped. It
is put beside another Kafka, in which the same records stand at the same offsets. Where the format of today has none,
the test of it makes one, and fails: it is to be kept.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from service.checkpoint.batch_log import COMMITS, last
from service.checkpoint.files import FolderFiles
from service.runtime.shard_operators import FORMAT, READABLE
from tests.brokers import Broker
from tests.spark.kept_checkpoints import FORMATS
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read
from tests.tar_files import unpack

PIPELINE = """
    SET 'pipeline.name' = 'kept';
    CREATE TABLE orders (name STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (
      'connector' = 'kafka', 'topic' = 'kept-orders', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE cities (name STRING, city STRING, PRIMARY KEY (name) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 'kept-cities', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE totals (city STRING, total BIGINT, PRIMARY KEY (city) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 'kept-totals', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE minutes (at TIMESTAMP(3), total BIGINT) WITH (
      'connector' = 'kafka', 'topic' = 'kept-minutes', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
    INSERT INTO totals SELECT city, SUM(amount) FROM orders JOIN cities ON orders.name = cities.name GROUP BY city;
    INSERT INTO minutes SELECT window_start, SUM(amount)
      FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
    END;
"""
TOPICS = ("kept-orders", "kept-cities", "kept-totals", "kept-minutes")
CITIES = {"ann": "Bonn", "bob": "Kyiv", "cem": "Bonn"}
ORDERS: list[dict[str, Any]] = [
    {"name": name, "amount": 10 * minute + number, "at": f"2024-01-01 00:{minute:02}:{20 * number:02}"}
    for minute in range(6)
    for number, name in enumerate(CITIES)
]
HALF = len(ORDERS) // 2 - 1
"""The half ends in the midst of a minute."""


def archive(format_: int) -> Path:
    return FORMATS / str(format_) / "spark.tar.xz"


class Topics:
    """The topics of the pipeline, made again with the cities in them."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
            future.result(30)
        self._feed_cities()

    def _feed_cities(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for name, city in CITIES.items():
            key, value = (json.dumps(each).encode() for each in ({"name": name}, {"name": name, "city": city}))
            producer.produce("kept-cities", value, key, partition=0)
        assert producer.flush(60) == 0

    def order(self, start: int, end: int) -> None:
        feed(self._bootstrap, "kept-orders", [(0, each) for each in ORDERS[start:end]])

    def totals(self) -> dict[str, int]:
        rows = [json.loads(value or b"null") for _, value in read(self._bootstrap, "kept-totals")]
        return {row["city"]: row["total"] for row in rows}

    def minutes(self) -> Counter[tuple[str, int]]:
        rows = [json.loads(value or b"null") for _, value in read(self._bootstrap, "kept-minutes")]
        return Counter((row["at"][14:16], row["total"]) for row in rows)


def totals_of(count: int) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in ORDERS[:count]:
        found[CITIES[each["name"]]] += each["amount"]
    return dict(found)


def minutes_of(count: int, start: int = 0) -> Counter[tuple[str, int]]:
    """The minutes that orders up to the `count`-th have closed, and those up to the `start`-th have not."""
    sums: Counter[str] = Counter()
    for each in ORDERS:
        sums[each["at"][14:16]] += each["amount"]
    closed = [ORDERS[end - 1]["at"][14:16] if end else "00" for end in (start, count)]
    return Counter({(minute, total): 1 for minute, total in sums.items() if closed[0] <= minute < closed[1]})


def keep(kafka: str, service: Callable[..., ServiceProcess], target: Path) -> None:
    """Leave what the service of today has in its folder after half of the orders."""
    topics = Topics(kafka)
    running = service(PIPELINE, kafka)
    topics.order(0, 5)
    running.start()
    running.until("the first orders are there", lambda: topics.totals() == totals_of(5))
    topics.order(5, HALF)
    running.until("half of the orders are there", lambda: topics.totals() == totals_of(HALF))
    running.until("their minutes are there", lambda: topics.minutes() == minutes_of(HALF))
    running.terminate()
    assert running.wait() == 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w:xz") as packed:
        packed.add(running.folder / "checkpoint", "checkpoint", filter=_lasting)


def _lasting(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file of a checkpoint, without its owner; none for the ids of a Kafka that is gone, and for the lock."""
    if Path(member.name).name in ("kafka.json", ".kafka.json.crc", "lock"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


@pytest.mark.timeout(900)
@pytest.mark.parametrize("format_", READABLE)
def test_the_service_goes_on_with_a_checkpoint_of_each_format(
    format_: int, own_kafka: Callable[..., Broker], service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    if format_ == FORMAT and not archive(format_).exists():
        keep(own_kafka().bootstrap, service, archive(format_))
        pytest.fail(f"{archive(format_)} was made: keep it")
    topics = Topics(kafka := own_kafka().bootstrap)
    topics.order(0, HALF)
    unpack(archive(format_), tmp_path)
    done = last(FolderFiles(str(tmp_path / "checkpoint" / "kept")), COMMITS)
    assert done > 0
    running = service(PIPELINE, kafka)
    topics.order(HALF, HALF + 3)
    running.start()
    running.until("the totals go on", lambda: topics.totals() == totals_of(HALF + 3))
    topics.order(HALF + 3, len(ORDERS))
    running.until("to the last order", lambda: topics.totals() == totals_of(len(ORDERS)))
    running.until("minutes, too", lambda: topics.minutes() == minutes_of(len(ORDERS), HALF))
    running.terminate()
    assert running.wait() == 0
    assert last(FolderFiles(str(tmp_path / "checkpoint" / "kept")), COMMITS) > done
    remembered = json.loads((tmp_path / "checkpoint" / "kept" / "tailrace" / "fixed.json").read_text())
    assert remembered["format"] == FORMAT
