"""The generated rows are the same each time and are what the queries declare."""

from __future__ import annotations

import json

import pytest

from bench.cases import CASES, MORE, NEXMARK, Topic
from bench.feed import blocks

TOPICS = sorted({topic for case in (*CASES, *MORE, *NEXMARK) for topic in case.topics}, key=str)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name(0))
def test_a_topic_always_has_the_same_rows(topic):
    assert list(blocks(topic, 1_000)) == list(blocks(topic, 1_000))


def test_fewer_rows_are_the_beginning_of_more_rows_as_long_as_blocks_are_whole():
    topic = Topic("PAYMENTS", "payments", 1_000)
    assert next(iter(blocks(topic, 200_000))) == next(iter(blocks(topic, 200_001)))


def test_a_row_is_at_most_two_seconds_older_than_its_number_says():
    rows = [json.loads(value) for value in next(iter(blocks(Topic("PAYMENTS", "payments", 10), 5_000)))]
    newest = -1
    for row in rows:
        newest = max(newest, row["ms"])
        assert newest - row["ms"] < 2_000 + len(rows) // 1_000
    assert [row["id"] for row in rows] == list(range(5_000))
    assert {row["account"] for row in rows} == set(range(10))


def test_each_order_is_shipped_once_and_not_more_than_six_seconds_later():
    orders = [json.loads(v) for v in next(iter(blocks(Topic("ORDERS", "orders", 10), 3_000)))]
    shipments = [json.loads(v) for v in next(iter(blocks(Topic("SHIPMENTS", "shipments", 10), 3_000)))]
    later = {s["order_id"]: s["ms"] - o["ms"] for o, s in zip(orders, shipments, strict=True)}
    assert list(later) == [order["id"] for order in orders]
    assert -2_000 <= min(later.values()) <= max(later.values()) < 6_000
    assert any(0 <= wait <= 5_000 for wait in later.values())


def test_versions_of_accounts_go_side_by_side_with_orders_of_which_there_are_as_many():
    orders = [json.loads(v) for v in next(iter(blocks(Topic("ORDERS", "orders", 10), 3_000)))]
    versions = [json.loads(v)["after"] for v in next(iter(blocks(Topic("ACCOUNTS", "versions", 2_000), 3_000)))]
    assert [version["account"] for version in versions[:2_000]] == list(range(2_000))
    assert all(0 <= v["ms"] - o["ms"] < 2_000 for o, v in zip(orders, versions, strict=True))


def test_a_side_input_has_as_many_rows_as_keys_however_many_a_case_has():
    (topic,) = {topic for case in NEXMARK for topic in case.topics if topic.kind == "side_input"}
    assert topic.rows(7) == topic.rows(1_000_000) == topic.keys
    names = [json.loads(value)["after"] for value in next(iter(blocks(topic, topic.rows(7))))]
    assert names[-1] == {"key": topic.keys - 1, "value": f"value {topic.keys - 1}"}
