"""Who writes what: one transaction for what goes to one cluster with one login, and names of its own for each."""

from __future__ import annotations

import pytest

from service.deployment.clusters import Address
from service.deployment.writers import check_unchanged, writers_of
from service.kafka.errors import KafkaConfigError

CLUSTERS = {"a:9092": "one", "a:9092,b:9092": "one", "c:9092": "two"}


def address(bootstrap: str, **properties: str) -> Address:
    return Address(librdkafka={"bootstrap.servers": bootstrap, **properties}, java={})


def cluster_of(address: Address) -> str:
    return CLUSTERS[address.librdkafka["bootstrap.servers"]]


def never(address: Address) -> str:
    raise AssertionError("there is no need to ask")


A, A_AND_B, C = (address(bootstrap) for bootstrap in CLUSTERS)
ANN, BOB = address("a:9092", **{"sasl.username": "ann"}), address("a:9092", **{"sasl.username": "bob"})


TABLES = {0: "a", 1: "b", 2: "a"}


@pytest.mark.parametrize(
    ("outputs", "side", "numbers"),
    [
        ({0: A, 1: A}, None, {"table a": 0, "table b": 0}),
        ({0: A, 1: A, 2: C}, None, {"table a": 0, "table b": 0, "table a (2)": 1}),
        ({0: A, 1: A_AND_B}, A, {"table a": 0, "table b": 0, "side": 0}),
        ({0: A, 1: C}, A, {"table a": 0, "table b": 1, "side": 0}),
        ({0: ANN, 1: BOB}, ANN, {"table a": 0, "table b": 1, "side": 0}),
        ({0: BOB}, ANN, {"table a": 0, "side": 1}),
        ({}, A, {"side": 0}),
        ({}, None, {}),
    ],
)
def test_outputs_share_a_writer_where_they_go_to_one_cluster_with_one_login(outputs, side, numbers):
    assert writers_of(outputs, side, cluster_of).numbers(TABLES) == numbers


def test_kafka_is_not_asked_where_all_is_written_in_one_way():
    assert writers_of({0: A, 1: address("a:9092")}, A, never).addresses == (A,)


def test_options_of_reading_and_of_sending_make_no_writer_of_their_own():
    reading = Address(librdkafka=A.librdkafka, java={"max.poll.records": "5"})
    large = address("a:9092", **{"message.max.bytes": "5000000", "compression.type": "zstd"})
    larger = address("a:9092", **{"message.max.bytes": "20000000", "compression.type": "gzip", "client.id": "me"})
    writers = writers_of({0: A, 1: reading, 2: large, 3: larger}, A, never)
    assert set(writers.numbers({n: f"t{n}" for n in range(4)}).values()) == {0}
    assert writers.addresses[0].librdkafka == {
        "bootstrap.servers": "a:9092",
        "message.max.bytes": "20000000",
        "compression.type": "zstd",
        "client.id": "me",
    }


def test_no_two_writers_have_the_same_markers_and_transactional_ids():
    writers = writers_of({0: A, 1: C, 2: ANN}, BOB, cluster_of)
    assert len({writers.identity("0f", number) for number in range(4)}) == len(writers.addresses) == 4


@pytest.mark.parametrize(
    ("known", "now", "refused"),
    [
        ({"table a": 0, "table b": 0}, {"table a": 0, "table b": 0}, ""),
        ({"table a": 0}, {"table a": 0, "side": 1}, ""),
        ({"table a": 0, "side": 1}, {"table a": 0}, ""),
        (
            {"table a": 0, "table b": 0},
            {"table a": 0, "table b": 1},
            "table b cannot be written in other transactions than before",
        ),
        ({"table a": 0, "side": 1}, {"table a": 0, "side": 0}, "dead letters and late rows cannot be written in other"),
    ],
)
def test_what_a_checkpoint_has_in_one_transaction_stays_in_one(known, now, refused):
    if not refused:
        check_unchanged(known, now)
        return
    with pytest.raises(KafkaConfigError, match=refused):
        check_unchanged(known, now)
