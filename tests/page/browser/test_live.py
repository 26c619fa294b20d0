"""The page of a real service: Kafka, Spark, a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from service.host.machine import free_ports
from tests.brokers import Broker, MakeTopic
from tests.page.browser.shown import DESK, photograph
from tests.spark.service_process import ServiceProcess
from tests.spark.shared_jvm.jvm import SharedJvms
from tests.spark.topics import feed, limit_records

BASE = 1_700_000_000_000
LARGEST = 2_000

PIPELINE = """
    SET 'pipeline.name' = 'minutes';
    CREATE TABLE readings (
      sensor STRING, note STRING, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et
    ) WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
    CREATE TABLE minutes (sensor STRING, w TIMESTAMP(3), n BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{windows}', 'format' = 'json');
    CREATE TABLE notes (sensor STRING, note STRING, PRIMARY KEY (sensor) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{notes}', 'key.format' = 'json', 'value.format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO minutes SELECT sensor, window_start, COUNT(*)
        FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(et), INTERVAL '1' MINUTE))
        GROUP BY sensor, window_start, window_end;
      INSERT INTO notes SELECT sensor, MAX(note) FROM readings GROUP BY sensor;
    END;
"""


def reading(second: int, note: str = "ok", sensor: str = "s1") -> dict[str, Any]:
    return {"sensor": sensor, "note": note, "ts": BASE + 1_000 * second}


@pytest.fixture
def service(
    kafka: Broker, make_topic: MakeTopic, jvms: SharedJvms, tmp_path: Path
) -> Iterator[Callable[[], tuple[ServiceProcess, str, str, str]]]:
    """Starts a service; with a topic that it reads, one that it writes, and its address."""
    (port,) = free_ports(1)
    source, windows = make_topic("readings", partitions=2), make_topic("minutes")
    notes = make_topic("notes", partitions=1)
    running = ServiceProcess(
        PIPELINE.format(source=source, windows=windows, notes=notes),
        tmp_path,
        kafka.bootstrap,
        jvms=jvms,
        HTTP__PORT=str(port),
        HTTP__SAMPLES="20",
        RETRY__BACKOFF="10m",
        TOPICS__LATE=make_topic("late", partitions=1),
        TOPICS__DEAD_LETTER=make_topic("dead", partitions=1),
    )

    def start() -> tuple[ServiceProcess, str, str, str]:
        running.start()
        return running, source, notes, f"http://127.0.0.1:{port}/"

    yield start
    running.close()


@pytest.mark.timeout(900)
def test_a_running_job_is_shown_as_it_is(
    kafka: Broker, browser: Browser, service: Callable[[], tuple[ServiceProcess, str, str, str]]
) -> None:
    running, source, notes, address = service()

    def job() -> dict[str, Any]:
        status, body = running.ask("/status.json")
        jobs = json.loads(body)["jobs"] if status == 200 else []
        return jobs[0] if jobs else {}

    def table() -> dict[str, Any]:
        tables: list[dict[str, Any]] = job().get("tables") or [{}]
        return tables[0]

    # The page is there before Spark is.
    running.until("the page is served", lambda: running.ask("/")[0] == 200)
    with browser.new_context(viewport=DESK) as context:  # type: ignore[arg-type]
        page = context.new_page()
        errors: list[str] = []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(address)
        feed(kafka.bootstrap, source, [(0, reading(0)), (0, reading(200)), (1, reading(190)), (1, b'{"sensor": "s')])
        running.until("the rows are read", lambda: table().get("rows") == 4)
        feed(kafka.bootstrap, source, [(0, reading(3, sensor="late")), (1, reading(230))])
        running.until("all rows are read", lambda: table().get("rows") == 6)
        running.until("the late row is counted", lambda: job().get("late", {}).get("total") == 1)
        running.until("its batch has ended", lambda: [p["read"] for p in table().get("partitions", ())] == [3, 3])
        running.until("it is in time", lambda: job().get("verdict", {}).get("headline") == "Keeps up")

        document = job()
        assert (document["state"], document["verdict"]["headline"]) == ("running", "Keeps up")
        assert [(p["partition"], p["lag"], p["watermark"]) for p in table()["partitions"]] == [
            (0, 0, BASE / 1000 + 200),
            (1, 0, BASE / 1000 + 230),
        ]
        (letter,) = document["dead_letters"]["samples"]
        assert (letter["reason"], letter["value"]) == ("bad-json", '{"sensor": "s')
        assert letter["origin"] == f"{source}/1, offset 1"
        (late,) = document["late"]["samples"]
        assert json.loads(late["value"])["sensor"] == "late"
        assert document["dead_letters"]["counts"] == {"bad-json": 1}
        assert document["batches"]["phases"][0]["phase"] == "addBatch"
        assert {"decode", "operators", "write"} <= {phase["phase"] for phase in document["batches"]["tasks"]}
        kept = {o["operator"]: o["state_rows"] for o in document["operators"] if o["state_rows"]}
        assert kept.get("group_by_1") == 2, kept
        expect(page.get_by_role("row", name=f"{source}/1")).to_contain_text("2023-11-14 22:17:10")
        expect(page.locator(".samples").first).to_contain_text('{"sensor": "s')
        photograph(page, "live")

        # A row that its topic does not take any more: the batch fails, and the page shows the error in full.
        limit_records(kafka.bootstrap, notes, LARGEST)
        note = f"z{Random(1).randbytes(4 * LARGEST).hex()}"  # still too large when it is compressed
        feed(kafka.bootstrap, source, [(0, reading(240, note))])
        running.until("the batch fails", lambda: job().get("state") == "retrying")
        (error,) = job()["errors"]
        assert "Traceback" in error["text"]
        assert error["summary"] in error["text"] or error["summary"].splitlines()[0] in error["text"]
        expect(page.locator(".headline", has_text="Failed, will be tried again")).to_be_visible()
        expect(page.locator(".errors pre")).to_contain_text("Traceback")
        photograph(page, "live-failed")
        assert errors == []
