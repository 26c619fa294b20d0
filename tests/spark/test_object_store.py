"""A checkpoint in an object store: what it needs, and that a pipeline goes on from it."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from service.archives import load
from service.settings import Spark
from service.spark.driver import object_store
from service.spark.driver.configuration import configured
from tests.brokers import Broker, MakeTopic
from tests.spark.fake_gcs import fake_gcs
from tests.spark.fake_s3 import fake_s3, s3_settings, unchunked
from tests.spark.service_process import QUICK, ServiceProcess, maps_archive_of_classes
from tests.spark.topics import feed, read, upserted

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.mark.parametrize(
    ("checkpoint", "lists"),
    [
        ("/data", ()),
        ("file:///data", ()),
        ("s3a://bucket/folder", ("s3a",)),
        ("gs://bucket", ("gs",)),
        ("hdfs://h", ()),
    ],
)
def test_a_store_needs_the_archives_of_its_client(checkpoint: str, lists: tuple[str, ...]):
    assert object_store.archives(checkpoint) == lists
    assert all(load(name).archives for name in lists)


def test_only_a_local_checkpoint_relies_on_a_rename_that_replaces_and_only_a_store_on_a_put():
    for checkpoint in ("checkpoint", "/data", "file:///data"):
        assert configured(Spark(), [Path("/a.jar")], checkpoint)[MANAGER] == "tailrace.checkpoint.FolderFiles"
    for checkpoint in ("s3a://bucket", "gs://bucket"):
        assert configured(Spark(), [Path("/a.jar")], checkpoint)[MANAGER] == "tailrace.checkpoint.StoreFiles"
    assert MANAGER not in configured(Spark(), [Path("/a.jar")], "hdfs://host/folder")


def test_the_users_own_client_of_a_store_goes_before_ours():
    own = Spark(conf={"spark.hadoop.fs.gs.impl": "com.example.FileSystem"})
    assert configured(own, [Path("/a.jar")], "gs://bucket")["spark.hadoop.fs.gs.impl"] == "com.example.FileSystem"


def test_what_is_about_to_be_sent_waits_in_the_temporary_folder_of_each_jvm():
    for checkpoint in ("s3a://bucket", "gs://bucket"):
        folder = configured(Spark(), [Path("/a.jar")], checkpoint)["spark.hadoop.hadoop.tmp.dir"]
        assert folder == "${java.io.tmpdir}/hadoop"


def test_a_body_that_is_signed_in_pieces_is_put_together():
    assert unchunked(b"3;s=a\r\nabc\r\n2;s=b\r\nde\r\n0;s=c\r\nx-amz-checksum:y\r\n\r\n") == b"abcde"


@pytest.mark.parametrize(
    "rest",
    [
        "Content-Length: 9\r\n\r\n",
        "Content-Length: 9\r\n\r\nv1\n",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nv1\n\r\n",
    ],
)
def test_a_put_whose_client_is_killed_before_its_end_stores_nothing(rest: str):
    with fake_s3() as (address, held):
        port = int(address.rpartition(":")[2])
        for body, kept in ((rest, False), ("Content-Length: 9\r\n\r\nv1\nentire", True)):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(f"PUT /bucket/commits/0 HTTP/1.1\r\nHost: s3\r\n{body}".encode())
                client.shutdown(socket.SHUT_WR)
                assert (b" 200 " in client.makefile("rb").read()) is kept
            assert held == ({"bucket/commits/0": b"v1\nentire"} if kept else {})


def test_a_pipeline_goes_on_from_a_checkpoint_in_s3_after_a_kill(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
):
    with fake_s3() as (address, held):
        goes_on(kafka, make_topic, service, "s3a://bucket/folder", s3_settings(address))
        assert "bucket/folder/totals/tailrace/fixed.json" in held
        assert any(key.startswith("bucket/folder/totals/tailrace/state/") for key in held)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the store's certificate is made with openssl")
def test_a_pipeline_goes_on_from_a_checkpoint_in_google_cloud_storage_after_a_kill(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
):
    with fake_gcs(tmp_path) as store:
        goes_on(kafka, make_topic, service, "gs://bucket/folder", store.settings)
        assert "bucket/folder/totals/tailrace/fixed.json" in store.store.objects
        assert any(key.startswith("bucket/folder/totals/tailrace/state/") for key in store.store.objects)


def goes_on(
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
    checkpoint: str,
    conf: Mapping[str, str],
) -> None:
    """A pipeline with its checkpoint there is killed, started again, and right."""
    orders, totals = make_topic("orders"), make_topic("totals", cleanup_policy="compact")
    query = f"""
        SET 'pipeline.name' = 'totals';
        CREATE TABLE orders (name STRING, amount BIGINT)
          WITH ('connector' = 'kafka', 'topic' = '{orders}', 'format' = 'json',
                'scan.startup.mode' = 'earliest-offset');
        CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
          WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
        INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
    """

    def are(expected: dict[str, int]) -> bool:
        return {row["name"]: row["total"] for row in upserted(read(kafka.bootstrap, totals)).values()} == expected

    running = service(query, kafka.bootstrap, CHECKPOINT=checkpoint, SPARK__CONF=json.dumps({**QUICK, **conf}))
    running.start()
    feed(kafka.bootstrap, orders, [(number % 2, {"name": f"n{number % 3}", "amount": 1}) for number in range(300)])
    running.until("every row is counted", lambda: are({"n0": 100, "n1": 100, "n2": 100}))
    assert [maps_archive_of_classes(pid) for pid in running.processes()["jvm"]] == [True]
    running.kill()
    feed(kafka.bootstrap, orders, [(0, {"name": "n0", "amount": 5})])
    running.start()
    running.until("it went on from there", lambda: are({"n0": 105, "n1": 100, "n2": 100}))
    running.terminate()
    assert running.wait() == 0
