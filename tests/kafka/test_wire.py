"""What travels between a task and its writer process."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Iterator

import pyarrow as pa
import pytest

from service.kafka import errors
from service.kafka.writer import librdkafka, wire
from service.kafka.writer.writer_settings import WriterSettings

Pair = tuple[socket.socket, socket.socket]
SETTINGS = WriterSettings(
    query="q",
    checkpoint_id="c",
    kafka={"bootstrap.servers": "k:9092", "sasl.password": "s3cret"},
    marker_topic="m",
    socket_folder="/tmp/writer",
    parent_pid=1,
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    task, writer = socket.socketpair()
    with task, writer:
        yield task, writer


def test_messages_and_rows_arrive_in_order(pair: Pair):
    rows = pa.record_batch({"topic": ["t", "t"], "value": pa.array([b"1", None])})
    wire.send_message(pair[0], {"do": "begin"})
    wire.send_rows(pair[0], rows)
    assert wire.receive(pair[1]) == {"do": "begin"}
    assert wire.receive(pair[1]) == rows


def test_a_slice_does_not_drag_its_whole_block_along(pair: Pair):
    rows = pa.record_batch({"value": pa.array([bytes(1000)] * 1000)})
    wire.send_rows(pair[0], rows.slice(500, 2))
    received = wire.receive(pair[1])
    assert isinstance(received, pa.RecordBatch)
    assert received.num_rows == 2
    assert received.get_total_buffer_size() < 10_000


def test_one_who_hangs_up_is_noticed(pair: Pair):
    assert not wire.hung_up(pair[1])
    wire.send_message(pair[0], {"do": "abort"})
    assert wire.readable(pair[1])
    assert not wire.hung_up(pair[1])
    wire.receive(pair[1])
    pair[0].close()
    assert wire.hung_up(pair[1])
    with pytest.raises(wire.PeerGone):
        wire.receive(pair[1])
    with pytest.raises(wire.PeerGone):
        wire.send_message(pair[1], {})


def test_a_message_that_breaks_off_is_no_message(pair: Pair):
    pair[0].sendall(b"J\0\0\0\0\0\0\0\x09{")
    pair[0].close()
    with pytest.raises(wire.PeerGone):
        wire.receive(pair[1])


@pytest.mark.parametrize(
    "kind",
    [errors.KafkaFailure, *errors.KafkaFailure.__subclasses__(), errors.Superseded],
    ids=lambda each: each.__name__,
)
def test_errors_arrive_as_they_were(kind: type[errors.KafkaFailure]):
    received = errors.from_message(errors.to_message(kind("what", "known", "do")))
    assert type(received) is kind
    assert (received.primary, received.detail, received.hint) == ("what", "known", "do")


def test_settings_arrive_as_they_were():
    assert WriterSettings.from_json(SETTINGS.to_json()) == SETTINGS


def test_settings_do_not_show_their_secrets():
    assert "s3cret" not in repr(SETTINGS)
    assert "s3cret" not in SETTINGS.socket_name()


def test_settings_that_differ_have_different_sockets():
    other = WriterSettings.from_json(SETTINGS.to_json().replace("s3cret", "changed"))
    assert SETTINGS.socket_name() != other.socket_name()


def test_the_layout_of_a_message_is_that_of_the_c_structure():
    layout = librdkafka.MESSAGE
    offsets = {name: field[1] for name, field in (layout.fields or {}).items()}
    assert offsets == {name: getattr(librdkafka.RdMessage, name).offset for name in layout.names or ()}
    assert layout.itemsize == ctypes.sizeof(librdkafka.RdMessage)
