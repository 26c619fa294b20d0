"""The part of librdkafka's C interface that a transactional producer needs, called directly.

The library is the one inside confluent-kafka. Its Python interface takes one row at a time; `rd_kafka_produce_batch`
takes an array of C structures, which numpy fills for a whole block at once. That halves the cost of a row.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from confluent_kafka import KafkaError, cimpl

COPY = 0x2
ANY_PARTITION = -1
"""RD_KAFKA_MSG_F_COPY and RD_KAFKA_PARTITION_UA: the record is copied, the partitioner chooses."""

# The tags of rd_kafka_vu_t, the arguments of rd_kafka_produceva.
TAG_TOPIC, TAG_PARTITION, TAG_VALUE, TAG_KEY, TAG_FLAGS, TAG_TIMESTAMP, TAG_HEADER = 2, 3, 4, 5, 7, 8, 9

_PRODUCER = 0
_OLDEST = 0x02000000
"""RD_KAFKA_PRODUCER, and the oldest version whose structures are laid out as here."""

MESSAGE = np.dtype(
    {
        "names": ["error", "topic", "partition", "value", "value_length", "key", "key_length"],
        "formats": ["i4", "u8", "i4", "u8", "u8", "u8", "u8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48],
        "itemsize": 72,
    }
)
"""rd_kafka_message_t on a 64-bit machine."""

ARGUMENT = np.dtype(
    {"names": ["tag", "a", "b", "c"], "formats": ["i4", "u8", "u8", "i8"], "offsets": [0, 8, 16, 24], "itemsize": 72}
)
"""rd_kafka_vu_t on a 64-bit machine: a tag and a union of 64 bytes, of which at most three words are used."""


class RdMessage(ctypes.Structure):
    """rd_kafka_message_t, as delivery reports show it."""

    _fields_ = [
        ("error", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("value", ctypes.c_void_p),
        ("value_length", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_length", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    ]


ON_DELIVERY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(RdMessage), ctypes.c_void_p)
ON_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class RdTopic(ctypes.Structure):
    """The beginning of rd_kafka_metadata_topic_t."""

    _fields_ = [("name", ctypes.c_char_p), ("partitions", ctypes.c_int)]


class RdMetadata(ctypes.Structure):
    """The beginning of rd_kafka_metadata_t."""

    _fields_ = [
        ("broker_count", ctypes.c_int),
        ("brokers", ctypes.c_void_p),
        ("topic_count", ctypes.c_int),
        ("topics", ctypes.POINTER(RdTopic)),
    ]


_P, _I, _S, _N = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "version": (_I, []),
    "conf_new": (_P, []),
    "conf_destroy": (None, [_P]),
    "conf_set": (_I, [_P, _S, _S, _S, _N]),
    "conf_set_dr_msg_cb": (None, [_P, ON_DELIVERY]),
    "conf_set_error_cb": (None, [_P, ON_ERROR]),
    "new": (_P, [_I, _P, _S, _N]),
    "destroy": (None, [_P]),
    "poll": (_I, [_P, _I]),
    "outq_len": (_I, [_P]),
    "err2str": (_S, [_I]),
    "fatal_error": (_I, [_P, _S, _N]),
    "topic_new": (_P, [_P, _S, _P]),
    "topic_name": (_S, [_P]),
    "topic_destroy": (None, [_P]),
    "metadata": (_I, [_P, _I, _P, _P, _I]),
    "metadata_destroy": (None, [_P]),
    "init_transactions": (_P, [_P, _I]),
    "begin_transaction": (_P, [_P]),
    "commit_transaction": (_P, [_P, _I]),
    "abort_transaction": (_P, [_P, _I]),
    "message_headers": (_I, [_P, ctypes.POINTER(_P)]),
    "header_cnt": (_N, [_P]),
    "header_get_all": (_I, [_P, _N, ctypes.POINTER(_P), ctypes.POINTER(_P), ctypes.POINTER(_N)]),
    "produce_batch": (_I, [_P, ctypes.c_int32, _I, _P, _I]),
    "error_code": (_I, [_P]),
    "error_string": (_S, [_P]),
    "error_is_fatal": (_I, [_P]),
    "error_is_retriable": (_I, [_P]),
    "error_txn_requires_abort": (_I, [_P]),
    "error_destroy": (None, [_P]),
}


class Fault(Exception):
    """An error of librdkafka."""

    def __init__(self, code: int, text: str, *, fatal: bool, retriable: bool, abortable: bool) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.fatal = fatal
        self.retriable = retriable
        self.abortable = abortable


class Library(NamedTuple):
    """librdkafka's functions. `call` gives up the interpreter lock while it runs; `produceva`, which is called once a
    row and never waits, keeps it."""

    call: Callable[..., int]
    produceva: Callable[[int, int, int], int | None]

    def check(self, error: int | None) -> None:
        """Raise the error object that a function returned, if it returned one."""
        if not error:
            return
        fault = Fault(
            self.call("error_code", error),
            text(self.call("error_string", error)),
            fatal=bool(self.call("error_is_fatal", error)),
            retriable=bool(self.call("error_is_retriable", error)),
            abortable=bool(self.call("error_txn_requires_abort", error)),
        )
        self.call("error_destroy", error)
        raise fault

    def describe(self, code: int) -> str:
        """Return librdkafka's words for an error code."""
        return text(self.call("err2str", code))


@cache
def load() -> Library:
    """Bind the library that comes with confluent-kafka."""
    shared = ctypes.CDLL(cimpl.__file__)
    functions = {}
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(shared, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    if functions["version"]() < _OLDEST or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise RuntimeError("librdkafka 2.0 or newer on a 64-bit machine is needed")
    produceva = ctypes.PyDLL(cimpl.__file__).rd_kafka_produceva
    produceva.restype, produceva.argtypes = _P, [_P, _P, _N]
    return Library(lambda name, *arguments: functions[name](*arguments), produceva)


def new_producer(properties: dict[str, str], on_delivery: object, on_error: object) -> int:
    """Make a producer; a Fault names the property that librdkafka does not take."""
    call = load().call
    configuration = call("conf_new")
    reason = ctypes.create_string_buffer(512)
    for name, value in properties.items():
        if call("conf_set", configuration, name.encode(), value.encode(), reason, len(reason)):
            call("conf_destroy", configuration)
            text = f"the property {name} was not accepted"
            raise Fault(KafkaError._INVALID_ARG, text, fatal=True, retriable=False, abortable=False)
    call("conf_set_dr_msg_cb", configuration, on_delivery)
    call("conf_set_error_cb", configuration, on_error)
    handle = call("new", _PRODUCER, configuration, reason, len(reason))
    if not handle:
        call("conf_destroy", configuration)
        text = reason.value.decode(errors="replace")
        raise Fault(KafkaError._INVALID_ARG, text, fatal=True, retriable=False, abortable=False)
    return handle


def await_broker(producer: int, milliseconds: int) -> None:
    """Wait until a broker has answered, for at most `seconds`."""
    partitions(producer, None, milliseconds)


def partitions(producer: int, topic: int | None, milliseconds: int) -> int:
    """Return the number of partitions of a topic; 1 if it is not known in time."""
    call = load().call
    metadata = ctypes.POINTER(RdMetadata)()
    if call("metadata", producer, 0, topic, ctypes.byref(metadata), milliseconds) != 0:
        return 1
    found = metadata.contents
    count = found.topics[0].partitions if found.topic_count else 1
    call("metadata_destroy", metadata)
    return max(1, int(count))


def header_sizes(message: ctypes._Pointer[RdMessage]) -> list[int]:
    """Return the bytes of name and value of each header of a message."""
    call = load().call
    headers = ctypes.c_void_p()
    if call("message_headers", message, ctypes.byref(headers)) != 0:
        return []
    found = []
    for place in range(call("header_cnt", headers)):
        name, value, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        call("header_get_all", headers, place, ctypes.byref(name), ctypes.byref(value), ctypes.byref(size))
        found.append(len(ctypes.string_at(name.value or 0)) + size.value)
    return found


def payload(message: RdMessage) -> bytes:
    """Return the key and the value of a message, one after the other."""
    parts = (message.key, message.key_length), (message.value, message.value_length)
    return b"".join(ctypes.string_at(where, size) for where, size in parts if where)


def text(value: object) -> str:
    """Return a value of librdkafka as text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
