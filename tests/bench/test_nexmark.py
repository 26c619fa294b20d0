"""The events of Nexmark have the proportions, the ids and the sizes that its rules give them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from bench.cases import Topic
from bench.feed import blocks

COUNT = 20_000


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return next(iter(blocks(Topic("EVENTS", "nexmark", 0), COUNT)))


@pytest.fixture(scope="module")
def events(records: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(record) for record in records]


def of_kind(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event[name] for event in events if event[name] is not None]


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(events):
    assert Counter(event["event_type"] for event in events[:50]) == {0: 1, 1: 3, 2: 46}
    assert [sum(event[name] is not None for name in ("person", "auction", "bid")) for event in events] == [1] * COUNT


def test_persons_and_auctions_are_numbered_as_they_come(events):
    assert [person["id"] for person in of_kind(events, "person")] == list(range(1000, 1000 + COUNT // 50))
    assert [auction["id"] for auction in of_kind(events, "auction")] == list(range(1000, 1000 + 3 * COUNT // 50))


def test_half_of_the_bids_are_on_hot_auctions_and_three_of_four_by_hot_bidders(events):
    bids = of_kind(events, "bid")
    hot = sum(bid["auction"] % 100 == 0 for bid in bids) / len(bids)
    assert 0.49 < hot < 0.53
    by_hot = sum(bid["bidder"] % 100 == 1 for bid in bids) / len(bids)
    assert 0.74 < by_hot < 0.78


def test_a_bid_is_on_an_auction_that_has_come_or_comes_soon(events):
    newest = 1000
    for event in events:
        if event["auction"] is not None:
            newest = event["auction"]["id"]
        if event["bid"] is not None:
            assert newest - 201 <= event["bid"]["auction"] <= newest + 10


def test_times_go_on_by_a_millisecond_in_ten_events(events):
    bids = [event["bid"]["dateTime"] for event in events if event["bid"]]
    assert bids == sorted(bids)
    assert events[0]["person"]["dateTime"] == "2024-01-01 00:00:00.000"
    assert events[-1]["bid"]["dateTime"] == "2024-01-01 00:00:01.999"
    assert all(auction["expires"] > auction["dateTime"] for auction in of_kind(events, "auction"))


def test_a_record_has_the_size_of_a_wide_row(records):
    assert 280 < sum(map(len, records)) / COUNT < 360


def test_half_of_the_channels_are_well_known_and_most_others_give_their_number(events):
    bids = of_kind(events, "bid")
    known = [bid for bid in bids if bid["channel"] in ("Google", "Facebook", "Baidu", "Apple")]
    assert 0.48 < len(known) / len(bids) < 0.52
    others = [bid for bid in bids if bid["channel"].startswith("channel-")]
    assert 0.85 < sum("channel_id=" in bid["url"] for bid in others) / len(others) < 0.95
