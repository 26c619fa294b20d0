"""Services of tests share a JVM, and what they leave in it ends with them."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.shared_jvm.jvm import SharedJvms
from tests.spark.topics import feed, read


def test_services_use_the_shared_jvm_one_after_another_until_one_is_killed(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], jvms: SharedJvms
):
    source, copy = make_topic("source", partitions=1), make_topic("copy", partitions=1)
    job = service(
        f"""
        CREATE TABLE s (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
          'scan.startup.mode' = 'earliest-offset');
        CREATE TABLE c (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{copy}', 'format' = 'json');
        INSERT INTO c SELECT n FROM s;
        """,
        kafka.bootstrap,
    )
    jvm = jvms.running()

    def copied(number: int) -> None:
        feed(kafka.bootstrap, source, [(0, {"n": number})])
        rows = [{"n": each} for each in range(number + 1)]
        job.until("all is copied", lambda: [json.loads(v) for _, v in read(kafka.bootstrap, copy) if v] == rows)

    for number in range(2):
        job.start()
        copied(number)
        assert jvm.used_by(job.driver), "a service of these settings has a JVM of its own"
        assert jvm.workers(), "its workers are no forks"
        found = job.processes()
        assert all(found[each] for each in ("driver", "jvm", "worker", "writer")), found
        job.terminate()
        assert job.wait() == 0
        assert jvm.runs()
    job.start()
    copied(2)
    job.kill()
    assert not jvm.runs()
    assert jvms.running() is not jvm
