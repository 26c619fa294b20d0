"""Protocol Buffers through real Kafka and Spark: descriptors of a file, a schema that changes under a running job."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from google.protobuf import descriptor_pb2

from service.formats.protobuf.schemas.compiler import described
from tests.brokers import Broker, MakeTopic
from tests.schema_registry.server import SmallRegistry, served
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, messages

PIPELINE = """
    CREATE TABLE names (id BIGINT, name STRING) WITH (
      'connector' = 'kafka', 'topic' = '{names}', 'scan.startup.mode' = 'earliest-offset',
      'format' = 'protobuf', 'protobuf.descriptor-set' = '{descriptors}');
    CREATE TABLE orders (id BIGINT, who BIGINT, amount BIGINT) WITH (
      'connector' = 'kafka', 'topic' = '{orders}', 'scan.startup.mode' = 'earliest-offset',
      'format' = 'protobuf-confluent', 'protobuf-confluent.url' = '{url}');
    CREATE TABLE spent (name STRING, amount BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{target}', 'key.format' = 'raw',
      'value.format' = 'protobuf-confluent', 'value.protobuf-confluent.url' = '{url}');
    INSERT INTO spent SELECT name, SUM(amount) FROM orders JOIN names ON who = names.id GROUP BY name;
"""
FIRST = 'syntax = "proto3"; message Order { int64 id = 1; int64 who = 2; int32 amount = 3; }'
SECOND = 'syntax = "proto3"; message None {} message Order { int64 amount = 9; int64 who = 2; string more = 1; }'
WRONG = 'syntax = "proto3"; message Order { int64 id = 1; string who = 2; }'


def test_a_message_may_change_under_a_running_job(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    names, orders, target, dead = (make_topic(name, partitions=1) for name in ("names", "orders", "target", "dead"))
    file = descriptor_pb2.FileDescriptorProto(name="names.proto", syntax="proto3")
    name = file.message_type.add(name="Name")
    name.field.add(name="id", number=1, type=3, label=1)
    name.field.add(name="name", number=2, type=9, label=1)
    descriptors = tmp_path / "names.pb"
    descriptors.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    assert described(descriptors.read_bytes()).declared == ("Name",)
    with served(SmallRegistry()) as registry:
        first, second, wrong = (registry.add(text, kind="PROTOBUF") for text in (FIRST, SECOND, WRONG))
        feed(kafka.bootstrap, names, [(0, b"\x08\x01\x12\x03Ann"), (0, b"\x08\x02\x12\x03Bob")])
        text = PIPELINE.format(names=names, orders=orders, target=target, url=registry.url, descriptors=descriptors)
        running = service(text, kafka.bootstrap, TOPICS__DEAD_LETTER=dead)
        running.start()
        feed(kafka.bootstrap, orders, [(0, framed(first, b"\0", b"\x08\x01\x10\x01\x18\x05"))] * 3)
        running.until("the first orders count", lambda: spent(kafka, target) == {"Ann": 15})
        descriptors.unlink()  # what it held is part of the job
        bad = framed(wrong, b"\0", b"\x08\x01\x12\x01x")
        cut = framed(first, b"\0", b"\x08")
        feed(kafka.bootstrap, orders, [(0, e) for e in (bad, cut, framed(second, b"\x02\x02", b"\x10\x02\x48\x07"))])
        running.until("the second schema counts", lambda: spent(kafka, target) == {"Ann": 15, "Bob": 7})
        running.until("the dead letters are committed", lambda: len(messages(kafka.bootstrap, dead)) == 2)
        running.terminate()

    letters = messages(kafka.bootstrap, dead)
    assert [letter.value() for letter in letters] == [bad, cut]
    details = [dict(letter.headers()) for letter in letters]
    assert [each["tailrace-reason"] for each in details] == [b"schema-mismatch", b"bad-protobuf"]
    assert details[0]["tailrace-detail"].startswith(b"schema %d: " % wrong)


def framed(number: int, path: bytes, data: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + path + data


def spent(kafka: Broker, topic: str) -> dict[str, int]:
    """The last amount of each name."""
    found: dict[str, int] = {}
    for message in messages(kafka.bootstrap, topic):
        body = message.value()[6:]
        found[message.key().decode()] = body[-1]  # a small number is one byte, the last
    return found
