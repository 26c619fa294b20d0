"""RAND and UUID after kill -9: what was drawn before is drawn once more, so the answers are those of a run that nobody
has killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

pytestmark = pytest.mark.timeout(1200)

PIPELINE = """
    SET 'pipeline.name' = 'drawn';
    CREATE TABLE orders (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{orders}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset'{bound});
    CREATE TABLE salted (salt INT, n BIGINT, total BIGINT) WITH ('connector' = 'kafka', 'topic' = '{salted}',
      'format' = 'changelog-json');
    CREATE TABLE named (id BIGINT, name STRING, luck DOUBLE) WITH ('connector' = 'kafka', 'topic' = '{named}',
      'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO salted SELECT salt, COUNT(*), SUM(id) FROM (SELECT RAND_INTEGER(4) AS salt, id FROM orders)
        GROUP BY salt;
      INSERT INTO named SELECT id, UUID(), RAND() FROM orders;
    END;
"""
ROWS = 8_000
LONG = 600.0
"""Seconds that a step may take where the machine is busy."""


def test_what_was_drawn_is_drawn_once_more_after_a_kill(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    orders = make_topic("orders")
    sinks = {run: (make_topic(f"salted-{run}"), make_topic(f"named-{run}")) for run in ("killed", "whole")}

    def pipeline(run: str, bound: str = "") -> str:
        salted, named = sinks[run]
        return PIPELINE.format(orders=orders, salted=salted, named=named, bound=bound)

    def named(run: str) -> Counter[tuple[Any, ...]]:
        rows = [json.loads(value or b"") for _, value in read(kafka.bootstrap, sinks[run][1])]
        return Counter((row["id"], row["name"], row["luck"]) for row in rows)

    def salted(run: str) -> Counter[tuple[int, int, int]]:
        """The changes added up: what is retracted was written."""
        rows: Counter[tuple[int, int, int]] = Counter()
        for _, value in read(kafka.bootstrap, sinks[run][0]):
            change = json.loads(value or b"")
            row = change["data"]["salt"], change["data"]["n"], change["data"]["total"]
            rows[row] += 1 if change["op"] in ("+I", "+U") else -1
        return Counter({row: count for row, count in rows.items() if count})

    killed = service(pipeline("killed"), kafka.bootstrap, BATCH__ROWS="500")
    ends = (killed.kill, killed.kill_driver)
    for number, end in enumerate(ends):
        part = range(number * ROWS // len(ends), (number + 1) * ROWS // len(ends))
        feed(kafka.bootstrap, orders, [(id % 2, {"id": id}) for id in part])
        before = sum(named("killed").values())

        def more(before: int = before) -> bool:
            return sum(named("killed").values()) > before

        killed.start()
        killed.until("it has written something more", more, LONG)
        end()
    killed.start()
    killed.until("all rows are written", lambda: sum(named("killed").values()) >= ROWS, LONG)
    killed.until("all rows are counted", lambda: sum(n for _, n, _ in salted("killed")) == ROWS, LONG)
    killed.terminate()
    assert killed.wait(LONG) == 0

    bounded = pipeline("whole", ", 'scan.bounded.mode' = 'latest-offset'")
    whole = service(bounded, kafka.bootstrap, folder=tmp_path / "whole")
    whole.start()
    assert whole.wait(LONG) == 0
    assert set(named("whole").values()) == {1}
    assert len({name for _, name, _ in named("whole")}) == ROWS, "each row has a name of its own"
    assert len(salted("whole")) == 4
    assert named("killed") == named("whole")
    assert salted("killed") == salted("whole")
