"""What we rely on of librdkafka's C interface: after an upgrade these tests fail first."""

from __future__ import annotations

import ctypes
import time

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from service.kafka.writer import librdkafka
from service.kafka.writer.librdkafka import ANY_PARTITION, COPY, MESSAGE, ON_DELIVERY, ON_ERROR, RdMessage

ROWS = [(b"a", b"first"), (b"bb", b""), (b"", b"third row")]
"""Key and value."""


def test_a_block_of_records_goes_in_and_comes_back_in_delivery_reports_as_it_was():
    """No broker listens, so each record is reported as timed out, with its key and its value."""
    reported: list[tuple[int, bytes, bytes]] = []

    def report(_: int, message: ctypes._Pointer[RdMessage], __: int) -> None:
        m = message.contents
        key, value = ctypes.string_at(m.key, m.key_length), ctypes.string_at(m.value, m.value_length)
        reported.append((m.error, key, value))

    on_delivery, on_error = ON_DELIVERY(report), ON_ERROR(lambda *_: None)
    settings = {"bootstrap.servers": "127.0.0.1:9", "message.timeout.ms": "50", "log_level": "0"}
    producer = librdkafka.new_producer(settings, on_delivery, on_error)
    call = librdkafka.load().call
    topic = call("topic_new", producer, b"topic", None)
    keys, values = (pa.array([row[i] for row in ROWS], pa.binary()) for i in (0, 1))
    messages = np.zeros(len(ROWS), MESSAGE)
    for name, column in (("key", keys), ("value", values)):
        _, offsets, data = column.buffers()
        starts = np.frombuffer(offsets, np.int32)[: len(ROWS) + 1].astype(np.int64)
        messages[name] = data.address + starts[:-1]
        messages[f"{name}_length"] = np.diff(starts)
    sent = call("produce_batch", topic, ANY_PARTITION, COPY, messages.ctypes.data, len(ROWS))
    assert sent == len(ROWS)
    until = time.monotonic() + 60
    while len(reported) < len(ROWS):
        assert time.monotonic() < until, "no delivery report"
        call("poll", producer, 50)
    assert sorted(reported) == sorted((KafkaError._MSG_TIMED_OUT, key, value) for key, value in ROWS)
    call("topic_destroy", topic)
    call("destroy", producer)


def test_an_error_code_has_words():
    assert librdkafka.load().describe(KafkaError._MSG_TIMED_OUT) == "Local: Message timed out"
