"""What is new in a changed query is backfilled beside the running one, through Kafka and Spark, and takes over exactly
once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.shared_jvm.jvm import SharedJvms
from tests.spark.topics import debezium, feed, read, upserted

pytestmark = pytest.mark.timeout(900)  # each starts Spark four times

BEFORE = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (
      'connector' = 'kafka', 'topic' = '{orders}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE refunds (name STRING, amount BIGINT) WITH (
      'connector' = 'kafka', 'topic' = '{refunds}', 'format' = 'json', 'scan.startup.mode' = 'latest-offset');
    CREATE TABLE refunded (name STRING, n BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{refunded}', 'format' = 'debezium-json');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE counts (name STRING, n BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{counts}', 'format' = 'debezium-json');
    CREATE TABLE large (name STRING, total BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{large}', 'format' = 'debezium-json');
    CREATE TABLE minutes (n BIGINT, at TIMESTAMP(3))
      WITH ('connector' = 'kafka', 'topic' = '{minutes}', 'format' = 'json');
    CREATE TABLE plain (name STRING, amount BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{plain}', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
    END;
"""
NEW = """
    INSERT INTO counts SELECT name, COUNT(*) FROM orders WHERE amount > 10 GROUP BY name;
    INSERT INTO large SELECT name, total FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, name) AS r
      FROM (SELECT name, SUM(amount) AS total FROM orders GROUP BY name)) WHERE r <= 3;
    INSERT INTO minutes SELECT COUNT(*), window_start
      FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
    INSERT INTO plain SELECT name, amount FROM orders WHERE amount > 90;
    INSERT INTO refunded SELECT name, COUNT(*) FROM refunds GROUP BY name;
    END;
"""
TABLES = ("orders", "refunds", "refunded", "totals", "counts", "large", "minutes", "plain")


class Pipeline:
    """Two queries over one topic, and what they are to answer to all that was fed."""

    def __init__(self, kafka: Broker, make_topic: MakeTopic, folder: Path) -> None:
        self.topics = {name: make_topic(name, partitions=2 if name == "orders" else 1) for name in TABLES}
        self.before = BEFORE.format(**self.topics)
        self.after = self.before.replace("END;", NEW)
        self.file = folder / "after.sql"
        self.file.write_text(self.after)
        self._bootstrap = kafka.bootstrap
        self._draw = random.Random(15)
        self.rows: list[dict[str, Any]] = []

    def feed(self, count: int) -> None:
        """Some more orders, each of a later time than those before."""
        rows: list[dict[str, Any]] = []
        for _ in range(count):
            second = len(self.rows) + len(rows)
            at = f"2024-01-01 {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            rows.append({"name": self._draw.choice("abcdefgh"), "amount": self._draw.randrange(100), "at": at})
        refunds = [{"name": row["name"], "amount": row["amount"]} for row in rows if row["amount"] < 30]
        feed(self._bootstrap, self.topics["refunds"], [(0, row) for row in refunds])
        feed(self._bootstrap, self.topics["orders"], [(number % 2, row) for number, row in enumerate(rows)])
        self.rows += rows

    def written(self, table: str) -> list[Any]:
        return read(self._bootstrap, self.topics[table])

    def totals(self) -> dict[str, int]:
        """What the first query has to have answered."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row["name"]] = found.get(row["name"], 0) + row["amount"]
        return found

    def answered(self) -> bool:
        """Whether the first query has answered to all that was fed."""
        written = upserted(self.written("totals")).values()
        return {row["name"]: row["total"] for row in written} == self.totals()

    def answered_new(self) -> bool:
        """Whether the changed query has, also to what the first does not read."""
        return self.answered() and self.refunded() == self.counted(lambda row: row["amount"] < 30)

    def refunded(self) -> list[tuple[str, int]]:
        """What the changed query says of the table that the first does not read."""
        return sorted((r["name"], r["n"]) for r in debezium(self.written("refunded")))

    def counted(self, wanted: Callable[[dict[str, Any]], bool]) -> list[tuple[str, int]]:
        """How many of the rows that are wanted each name has."""
        return sorted(Counter(row["name"] for row in self.rows if wanted(row)).items())

    def check_new(self) -> None:
        """What is new has answered to all rows, and each answer stands there once."""
        counts = sorted((r["name"], r["n"]) for r in debezium(self.written("counts")))
        assert counts == self.counted(lambda row: row["amount"] > 10)
        assert self.refunded() == self.counted(lambda row: row["amount"] < 30)
        best = sorted(self.totals().items(), key=lambda item: (-item[1], item[0]))[:3]
        assert sorted((r["name"], r["total"]) for r in debezium(self.written("large"))) == sorted(best)
        plain = sorted((r["name"], r["amount"]) for r in map(json.loads, (v for _, v in self.written("plain"))))
        assert plain == sorted((r["name"], r["amount"]) for r in self.rows if r["amount"] > 90)
        windows = [json.loads(value) for _, value in self.written("minutes")]
        starts = [each["at"] for each in windows]
        assert len(starts) == len(set(starts)), "a window is answered once"
        for each in windows:
            assert each["n"] == sum(row["at"][:16] == each["at"][:16] for row in self.rows), each
        assert len(windows) >= len(self.rows) // 60 - 2


class Upgrades(ServiceProcess):
    """`tailrace upgrade` as its users run it; what it says is in `log`."""

    def __init__(self, kafka: Broker, folder: Path, jvms: SharedJvms) -> None:
        own = folder / "upgrade"
        own.mkdir()
        checkpoint = str(folder / "checkpoint")
        super().__init__("", own, kafka.bootstrap, jvms=jvms, CHECKPOINT=checkpoint, BATCH__ROWS="200")


@pytest.fixture
def upgrades(kafka: Broker, tmp_path: Path, jvms: SharedJvms) -> Iterator[Upgrades]:
    """The command, ended with the test."""
    made = Upgrades(kafka, tmp_path, jvms)
    yield made
    made.close()


def test_what_is_new_is_backfilled_while_the_query_is_stopped(
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
    upgrades: Upgrades,
    tmp_path: Path,
) -> None:
    pipeline = Pipeline(kafka, make_topic, tmp_path)
    job = service(pipeline.before, kafka.bootstrap, BATCH__ROWS="300")
    pipeline.feed(900)
    job.start()
    job.until("all totals are there", pipeline.answered)
    job.terminate()
    assert job.wait() == 0
    pipeline.feed(300)  # what comes now is for the changed query
    arguments = ("--from", "earliest", str(pipeline.file))
    upgrades.call("upgrade", "--check", *arguments)
    assert upgrades.wait() == 0, upgrades.log
    assert "totals: table orders: 900 records are read again\n" in upgrades.log
    assert "totals: table refunds: " in upgrades.log
    upgrades.call("upgrade", *arguments)
    assert upgrades.wait() == 0, upgrades.log[-4000:]
    assert "the changed query has taken over" in upgrades.log
    assert not (tmp_path / "checkpoint/totals/tailrace/backfill").exists()
    job.rewrite(pipeline.after)
    job.start(SPARK__PARTITIONS="3")
    job.until("all totals are there", pipeline.answered_new)
    pipeline.feed(300)
    job.until("all totals are there", pipeline.answered_new)
    job.terminate()
    assert job.wait() == 0
    pipeline.check_new()


def test_all_jobs_of_a_pipeline_are_backfilled_before_it_runs(
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
    upgrades: Upgrades,
    tmp_path: Path,
) -> None:
    """As an init container does it, which is started as often as its pod."""
    pipeline = Pipeline(kafka, make_topic, tmp_path)
    counts, large, *others = [f"{each};" for each in NEW.replace("END;", "").split(";") if each.strip()]

    def two_jobs(first: str = "", second: str = "") -> str:
        other_job = f"EXECUTE STATEMENT SET BEGIN {counts} {second} END;"
        return pipeline.before.replace("END;", f"{first} END; {other_job}")

    job = service(two_jobs(), kafka.bootstrap, BATCH__ROWS="300")
    pipeline.feed(1800)  # so many batches that the first backfill is killed in the midst of them
    job.start()

    def answered() -> bool:
        rows = sorted((r["name"], r["n"]) for r in debezium(pipeline.written("counts")))
        return pipeline.answered() and rows == pipeline.counted(lambda row: row["amount"] > 10)

    job.until("both jobs have answered", answered)
    job.terminate()
    assert job.wait() == 0
    pipeline.file.write_text(two_jobs("".join(others), large))
    arguments = ("--stopped", "--from", "earliest", str(pipeline.file))
    upgrades.call("upgrade", *arguments)
    upgrades.until("a backfill is under way", lambda: '"records_left"' in upgrades.log)
    upgrades.kill_driver()
    for _ in range(2):
        upgrades.call("upgrade", *arguments)
        assert upgrades.wait() == 0, upgrades.log[-4000:]
    assert upgrades.log.count("the changed query has taken over") == 2
    assert upgrades.log.count("the checkpoint belongs to this query") == 2
    job.rewrite(pipeline.file.read_text())
    job.start()
    pipeline.feed(300)
    job.until("all is answered", lambda: answered() and pipeline.answered_new())
    job.terminate()
    assert job.wait() == 0
    pipeline.check_new()
