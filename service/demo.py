"""`tailrace demo`: a local Kafka, a live stream of orders, the quick-start pipeline, and its changelog as it comes.

Everything lives in one temporary folder and in processes of this one, so Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, Producer

from service.exit_codes import FAILED, OK
from service.host.machine import MachineError
from service.host.scratch import scratch
from service.kafka.admin import Cluster, TopicSpec
from service.kafka.local_broker.broker import EmbeddedKafka
from service.observability.http_server import HttpServer
from service.observability.observer import Observer
from service.observability.redaction import Redaction
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Job
from service.plan.program import Program
from service.run import Service, http_server, observer_for
from service.settings import Settings, load
from service.sql.pipeline import load as load_pipeline

PIPELINE = Path(__file__).resolve().parents[1] / "examples" / "quickstart.sql"
TOPICS = ("orders", "revenue", "spending")
PRODUCTS = ("coffee", "tea", "cocoa")
USERS = ("ann", "ben", "cho", "dee")


def demo(*, rate: int, seconds: float) -> int:
    """Run until Ctrl-C, or for `seconds` if that is more than 0. Return exit code 0, or 1 after printing the reason."""
    try:
        with EmbeddedKafka() as broker, scratch() as folder:
            return _show(broker.bootstrap, folder, rate, seconds)
    except MachineError as error:
        print(f"error: {error}")
        return FAILED
    except KeyboardInterrupt:
        return OK


def _show(bootstrap: str, folder: Path, rate: int, seconds: float) -> int:
    Cluster({"bootstrap.servers": bootstrap}).create(TopicSpec(name=n, partitions=2, replication=1) for n in TOPICS)
    settings = load(
        {
            "TAILRACE_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
            "TAILRACE_CHECKPOINT": str(folder / "checkpoint"),
            "TAILRACE_TOPICS__CREATE": "true",
            "TAILRACE_HTTP__HOST": "127.0.0.1",
        }
    )
    pipeline = load_pipeline(PIPELINE, {**os.environ, "KAFKA": bootstrap})
    programs = tuple(compile_job(job) for job in pipeline.jobs)
    redaction = Redaction(())
    observer = observer_for(settings, redaction, quiet=True)
    server = _serve(pipeline.jobs, programs, settings, observer, redaction)
    print(f"The status page is at http://127.0.0.1:{server.port}/ and shows what follows as it runs.")
    print(f"A local Kafka runs at {bootstrap}. Orders come in, {rate} a second.")
    print(
        f"The pipeline is {PIPELINE.relative_to(PIPELINE.parents[1])}; Spark starts, this takes some seconds.\n",
        flush=True,
    )
    service = Service(programs, settings, observer)
    ended = threading.Event()
    threads = [
        threading.Thread(target=_feed, args=(bootstrap, rate, ended), name="orders"),
        threading.Thread(target=_print, args=(bootstrap, ended), name="changelog"),
    ]
    end = threading.Timer(seconds, service.stop)
    if seconds:
        end.start()
    for thread in threads:
        thread.start()
    try:
        return service.run()
    finally:
        end.cancel()  # after Ctrl-C the process would wait for it
        ended.set()
        for thread in threads:
            thread.join()
        server.close()
        print("\nThe demo has ended; its Kafka, its topics and its checkpoint are gone.")


def _serve(
    jobs: Sequence[Job], programs: tuple[Program, ...], settings: Settings, observer: Observer, redaction: Redaction
) -> HttpServer:
    """Serve the status page at the usual port, or at any free one if that is taken."""
    try:
        return http_server(jobs, programs, settings, observer, redaction, settings.http.port)
    except OSError:
        return http_server(jobs, programs, settings, observer, redaction, 0)


def _feed(bootstrap: str, rate: int, ended: threading.Event) -> None:
    """Orders, a little out of order, the busiest user first."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    chance = random.Random(1)
    number = 0
    while not ended.wait(0.1):
        for _ in range(max(1, rate // 10)):
            number += 1
            when = time.time() - chance.expovariate(2.0)
            user = chance.choices(USERS, weights=(8, 4, 2, 1))[0]
            order = {
                "order_id": number,
                "user_id": user,
                "product": chance.choice(PRODUCTS),
                "amount": f"{chance.randint(100, 2000) / 100:.2f}",
                "ts": datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            }
            producer.produce("orders", json.dumps(order), key=user)
        producer.poll(0)
    producer.flush(5)


def _print(bootstrap: str, ended: threading.Event) -> None:
    """Print every committed change of both tables as it comes."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["revenue", "spending"])
    while not ended.is_set():
        message = consumer.poll(0.2)
        if message is None or message.error() is not None:
            continue
        print(_line(str(message.topic()), json.loads(message.value() or b"null", parse_float=str)), flush=True)
    consumer.close()


def _line(topic: str, record: dict[str, object]) -> str:
    """One change as people read it: its kind, its table, its columns."""
    if topic == "spending":
        row, kind = record["data"], record["op"]
    else:
        row, kind = record, "+I"
    assert isinstance(row, dict)
    return f"{kind}  {topic:<9} " + "  ".join(f"{name}={value}" for name, value in row.items())
