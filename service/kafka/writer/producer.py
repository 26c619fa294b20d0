"""A transactional producer that takes whole blocks of rows."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError

from service.kafka.error_codes import TOO_LARGE
from service.kafka.errors import Refused
from service.kafka.writer import librdkafka
from service.kafka.writer.librdkafka import Fault
from service.kafka.writer.records import TopicRows
from service.record_packing import OF_A_HEADER, OVERHEAD, packed

BATCH_BYTES = 1_000_000
"""The bytes of a batch: as many as a broker accepts by default, without the batch's header."""

DEFAULTS = {
    "compression.type": "lz4",
    "linger.ms": "1000",
    "batch.size": str(BATCH_BYTES),
    "batch.num.messages": "100000",
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": "0",
    "queue.buffering.max.kbytes": "2097151",
    "topic.metadata.propagation.max.ms": "10000",
    "reconnect.backoff.ms": "10",
    "reconnect.backoff.max.ms": "2000",
    "log_level": "2",
}
"""What suits large blocks; a pipeline's own settings win. The queue has no bound of its own because `produce` bounds
what is under way. Rows linger long: they are sent when a batch is full, and at the commit, where nothing lingers."""

UNDER_WAY_BYTES = 1_600_000
"""What may be under way for each partition: one batch that is sent, and most of the next.

An idempotent producer has one request under way for a partition. With a second batch ready, librdkafka's thread does
not wait for the first, it asks the clock again and again, and takes a core from those who work. With less than a batch
for each partition, none would ever be full."""

MOST_BYTES = 64_000_000
"""The bytes under way of a topic with very many partitions: their batches linger."""

BLOCK_ROWS = 20_000
_PIECE_MS = 5
_METADATA_MS = 5_000
"""Limits of one step: the rows passed to librdkafka at once, the seconds to wait for its reports, and those for the
partitions of a topic."""


class Refusal(NamedTuple):
    """A record that Kafka has refused: the reason, and its topic."""

    code: int
    topic: str


class _Turned(NamedTuple):
    """The records of one partition that brokers refused as too large: how many they are, the first of them, and the
    smallest of those that are too large to share a batch (0: there is none), in bytes as `record_packing` has them."""

    records: int
    first: int
    alone: int


class _Block(NamedTuple):
    """The rows from `first` up to `last`, with `size` bytes of keys and values."""

    first: int
    last: int
    size: int


class Producer:
    """One transactional id's producer. Not for two threads at once.

    Every call that waits for Kafka takes a time limit in seconds and raises a retriable Fault when it has passed; the
    call can then be repeated and goes on where it was. `refusals` are the records of the transaction that Kafka did not
    take, with the size (key and value) of the largest: brokers refuse the small ones that travel with a large one, too.
    `trouble` is the last thing that went wrong with the connection.
    """

    def __init__(self, properties: Mapping[str, str], transactional_id: str, transaction_timeout_ms: int) -> None:
        self.refusals: dict[Refusal, int] = {}
        self.trouble: tuple[int, str] | None = None
        self._library = librdkafka.load()
        self._call = self._library.call
        self._callbacks = librdkafka.ON_DELIVERY(self._refused), librdkafka.ON_ERROR(self._troubled)
        always = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(transaction_timeout_ms),
            "enable.idempotence": "true",
            "delivery.report.only.error": "true",
        }
        configured = DEFAULTS | dict(properties)
        self._batch_bytes = int(configured["batch.size"])
        self._codec = None if configured["compression.type"] == "none" else configured["compression.type"]
        self._turned: dict[tuple[str, int], _Turned] = {}
        self._handle = librdkafka.new_producer(configured | always, *self._callbacks)
        self._topics: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._under_way: deque[_Block] = deque()
        self._bounds: dict[str, int] = {}

    def init(self, seconds: float) -> None:
        """Take the epoch: fence older owners of the id and end their transactions."""
        # librdkafka looks for the coordinator at once and, if no broker is connected yet, again after half a second.
        librdkafka.await_broker(self._handle, max(1, int(seconds * 1000)))
        self._waiting("init_transactions", seconds)

    def begin(self) -> None:
        """Begin a transaction."""
        self.refusals.clear()
        self._turned.clear()
        self._under_way.clear()
        self._bounds.clear()
        self._library.check(self._call("begin_transaction", self._handle))

    def commit(self, seconds: float) -> None:
        """Deliver the records under way and commit."""
        self._waiting("commit_transaction", seconds)

    def abort(self, seconds: float) -> None:
        """Drop the records under way and abort."""
        self._waiting("abort_transaction", seconds)

    def too_large(self) -> dict[str, Refused]:
        """Return what brokers have refused of the transaction as too large, by topic.

        A broker refuses a batch with all of its records. Who is as large as a batch may be is alone in one, and so is
        the only record of a partition that was refused.
        """
        found: dict[str, Refused] = {}
        for (topic, _), turned in self._turned.items():
            known = found.get(topic, Refused())
            alone = turned.first if turned.records == 1 else turned.alone
            smallest = min(filter(None, (known.alone, alone)), default=0)
            several = turned.records > 1 and not turned.alone
            found[topic] = Refused(smallest, self._batch_bytes if several else known.together)
        return found

    def produce(self, rows: TopicRows, check_cancelled: Callable[[], None]) -> None:
        """Put `rows` under way, a block at a time. `check_cancelled` is called between blocks and may raise.

        What lingers from earlier calls counts as under way, and is not waited for: the marker that ends a transaction
        would otherwise wait until the rows before it have lingered to their end.
        """
        plain = rows.headers is None and rows.timestamp is None
        place = self._produce_plainly if plain else self._produce_with_arguments
        self._bounds[rows.topic] = self._bound(rows.topic)
        bound = sum(self._bounds.values())
        for block in _blocks(rows, max(1, self._bounds[rows.topic] // 8)):
            place(rows, block.first, block.last)
            self._under_way.append(block)
            while len(self._under_way) > 1 and sum(each.size for each in self._under_way) > bound:
                self._under_way.popleft()
            check_cancelled()
            while self._call("outq_len", self._handle) > sum(each.last - each.first for each in self._under_way):
                self._call("poll", self._handle, _PIECE_MS)
                check_cancelled()
            self._call("poll", self._handle, 0)

    def close(self) -> None:
        """Close the producer. An open transaction stays open until its id is reused or it times out."""
        for topic in self._topics.values():
            self._call("topic_destroy", topic)
        self._topics.clear()
        self._call("destroy", self._handle)

    def fatal(self) -> Fault | None:
        """Return why the producer can no longer be used, None if it can."""
        reason = ctypes.create_string_buffer(512)
        code = self._call("fatal_error", self._handle, reason, len(reason))
        text = reason.value.decode(errors="replace")
        return Fault(code, text, fatal=True, retriable=False, abortable=False) if code else None

    def _bound(self, topic: str) -> int:
        """The most bytes of a topic that may be under way."""
        if topic not in self._partitions:
            self._partitions[topic] = librdkafka.partitions(self._handle, self._topic(topic), _METADATA_MS)
        return min(self._partitions[topic] * UNDER_WAY_BYTES, MOST_BYTES)

    def _waiting(self, function: str, seconds: float) -> None:
        try:
            self._library.check(self._call(function, self._handle, max(1, int(seconds * 1000))))
        finally:
            self._call("poll", self._handle, 0)

    def _produce_plainly(self, rows: TopicRows, first: int, last: int) -> None:
        messages = np.zeros(last - first, dtype=librdkafka.MESSAGE)
        if rows.value is not None:
            messages["value"] = rows.value.address[first:last]
            messages["value_length"] = rows.value.length[first:last]
        if rows.key is not None:
            messages["key"] = rows.key.address[first:last]
            messages["key_length"] = rows.key.length[first:last]
        if rows.partition is None:
            self._produce_batch(rows, librdkafka.ANY_PARTITION, messages, np.arange(first, last))
            return
        # One call a partition, each with its rows in their order. Messages that carry partitions of their own would
        # not do: where the topic is not known yet, "-1" is added to the transaction, which the brokers refuse.
        partition = rows.partition[first:last]
        order = np.argsort(partition, kind="stable")
        ends = np.flatnonzero(np.diff(partition[order])) + 1
        for which in np.split(order, ends):
            self._produce_batch(rows, int(partition[which[0]]), messages[which], first + which)

    def _produce_batch(
        self, rows: TopicRows, partition: int, messages: npt.NDArray[np.void], numbers: npt.NDArray[np.int64]
    ) -> None:
        """Rows `numbers` of `rows`, as `messages`, to one partition."""
        where = self._topic(rows.topic), partition, librdkafka.COPY
        taken = self._call("produce_batch", *where, messages.ctypes.data, len(messages))
        if taken != len(messages):
            row = int(np.flatnonzero(messages["error"])[0])
            self._refuse(int(messages["error"][row]), rows, int(numbers[row]))

    def _produce_with_arguments(self, rows: TopicRows, first: int, last: int) -> None:
        arguments, used = _arguments(rows, first, last, self._topic(rows.topic))
        step = arguments.shape[1] * arguments.itemsize
        start = arguments.ctypes.data
        addresses = iter(range(start, start + len(arguments) * step, step))
        error = next(filter(None, map(self._library.produceva, repeat(self._handle), addresses, used)), None)
        if error:
            row = (next(addresses, start + len(arguments) * step) - start) // step - 1
            try:
                self._library.check(error)
            except Fault as fault:
                self._refuse(fault.code, rows, first + row)

    def _refuse(self, code: int, rows: TopicRows, row: int) -> None:
        if code != KafkaError._STATE:  # the transaction has failed already, at another record and maybe another topic
            size = sum(int(each.length[row]) for each in (rows.key, rows.value) if each is not None)
            self._note_refusal(Refusal(code, rows.topic), size)
        raise Fault(code, self._library.describe(code), fatal=False, retriable=False, abortable=True)

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            self._topics[name] = self._call("topic_new", self._handle, name.encode(), None)
        return self._topics[name]

    def _refused(self, _handle: int, message: ctypes._Pointer[librdkafka.RdMessage], _opaque: int) -> None:
        report = message.contents
        purged = report.error in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
        if not purged:
            topic = librdkafka.text(self._call("topic_name", report.topic))
            self._note_refusal(Refusal(report.error, topic), report.value_length + report.key_length)
            if report.error in TOO_LARGE:
                self._turn_down(message, (topic, report.partition))

    def _turn_down(self, message: ctypes._Pointer[librdkafka.RdMessage], place: tuple[str, int]) -> None:
        """Note a record that a broker refused. What it takes compressed is only asked where that may matter: a batch
        may have many records."""
        report = message.contents
        known = self._turned.get(place, _Turned(0, 0, 0))
        large = report.value_length + report.key_length >= self._batch_bytes
        size = 0
        if large or not known.records:
            beside = OVERHEAD + sum(OF_A_HEADER + each for each in librdkafka.header_sizes(message))
            size = packed(librdkafka.payload(report), beside, self._codec)
        alone = min(filter(None, (known.alone, size if large else 0)), default=0)
        self._turned[place] = _Turned(known.records + 1, known.first or size, alone)

    def _note_refusal(self, refusal: Refusal, size: int) -> None:
        self.refusals[refusal] = max(size, self.refusals.get(refusal, 0))

    def _troubled(self, _handle: int, code: int, reason: bytes | None, _opaque: int) -> None:
        if code not in (KafkaError._FATAL, KafkaError._ALL_BROKERS_DOWN):  # the latter follows each of the others
            self.trouble = (code, (reason or b"").decode(errors="replace"))


def _blocks(rows: TopicRows, size: int) -> Iterator[_Block]:
    """Cut rows into blocks of bounded rows and bytes (a single row may be larger)."""
    sizes = np.zeros(rows.rows, np.int64)
    for each in (rows.key, rows.value):
        if each is not None:
            sizes += each.length
    ends = np.cumsum(sizes)
    first = 0
    while first < rows.rows:
        sent = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, sent + size, side="right"))
        last = min(max(last, first + 1), first + BLOCK_ROWS, rows.rows)
        yield _Block(first, last, int(ends[last - 1]) - sent)
        first = last


def _arguments(rows: TopicRows, first: int, last: int, topic: int) -> tuple[npt.NDArray[np.void], Iterator[int]]:
    """The arguments of rd_kafka_produceva for each row, and how many of them each row uses: headers come last."""
    headers = rows.headers
    most = 0
    per_row = np.zeros(last - first, np.int64)
    if headers is not None:
        per_row = np.diff(headers.first[first : last + 1])
        most = int(per_row.max(initial=0))
    fixed = 6
    arguments = np.zeros((last - first, fixed + most), dtype=librdkafka.ARGUMENT)
    tags = (
        librdkafka.TAG_TOPIC,
        librdkafka.TAG_FLAGS,
        librdkafka.TAG_PARTITION,
        librdkafka.TAG_KEY,
        librdkafka.TAG_VALUE,
        librdkafka.TAG_TIMESTAMP,
    )
    arguments["tag"][:, :fixed] = tags
    words = arguments["a"]
    words[:, 0] = topic
    words[:, 1] = librdkafka.COPY
    anywhere = np.full(rows.rows, librdkafka.ANY_PARTITION, np.int32)
    partition = anywhere if rows.partition is None else rows.partition
    words[:, 2] = partition[first:last].astype(np.int64).view(np.uint64)
    for place, strings in ((3, rows.key), (4, rows.value)):
        if strings is not None:
            words[:, place] = strings.address[first:last]
            arguments["b"][:, place] = strings.length[first:last]
    if rows.timestamp is not None:
        words[:, 5] = rows.timestamp[first:last].view(np.uint64)
    if headers is not None:
        low, high = int(headers.first[first]), int(headers.first[last])
        row = np.repeat(np.arange(last - first), per_row)
        column = fixed + np.arange(low, high) - headers.first[first:last][row]
        arguments["tag"][row, column] = librdkafka.TAG_HEADER
        words[row, column] = headers.name_address[headers.code[low:high]]
        arguments["b"][row, column] = headers.value.address[low:high]
        arguments["c"][row, column] = headers.value.length[low:high]
    return arguments, iter((per_row + fixed).tolist())
