"""The events of Nexmark, made from its published rules: always the same ones for the same numbers.

Of fifty events in a row the first is a person, the next three are auctions and the other 46 are bids. Half of the bids
go to a hot auction, three of four come from a hot bidder, three of four auctions from a hot seller. Prices are spread
evenly over their logarithm. Event time goes on by 0.1 ms an event and never back, so no event is late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

START_MS = 1_704_067_200_000  # 2024-01-01
EVENTS_PER_MS = 10
"""10,000 events a second, the first rate of the generator of the benchmark."""

EPOCH, PERSONS, AUCTIONS = 50, 1, 3
FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
IN_FLIGHT = 100
"""Auctions that may still get bids."""
ACTIVE = 1000
"""Persons who may still bid or sell."""
LEAD = 10
"""Ids that are named before their event has come."""
HOT = 100
"""One id in this many is hot at a time."""
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")

PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
"""What an event of each kind is to have on average, filled up by its column `extra`."""


def events(random: np.random.Generator, numbers: Numbers, keys: int) -> tuple[pa.Table, str]:
    """The columns of the events with these `numbers`, and DuckDB text for the record of each; `keys` has no meaning."""
    offset = numbers % EPOCH
    kinds = np.where(offset < PERSONS, 0, np.where(offset < PERSONS + AUCTIONS, 1, 2))
    now = START_MS + numbers // EVENTS_PER_MS
    price = _prices(random, len(numbers))
    columns: dict[str, Any] = {
        "kind": kinds,
        "moment": _times(now),
        "id": np.where(kinds == 0, last_person(numbers), last_auction(numbers)) + FIRST_ID,
        "price": price,
        "extra": _extra(random, kinds),
    }
    columns |= _persons(random, len(numbers)) | _auctions(random, numbers, now, price) | _bids(random, numbers)
    return pa.table(columns), RECORD


RECORD = """
CASE kind
WHEN 0 THEN '{"event_type":0,"person":{"id":' || id || ',"name":"' || name || '","emailAddress":"' || email
  || '","creditCard":"' || card || '","city":"' || city || '","state":"' || state || '","dateTime":"' || moment
  || '","extra":"' || extra || '"},"auction":null,"bid":null}'
WHEN 1 THEN '{"event_type":1,"person":null,"auction":{"id":' || id || ',"itemName":"' || item || '","description":"'
  || description || '","initialBid":' || price || ',"reserve":' || reserve || ',"dateTime":"' || moment
  || '","expires":"' || expires || '","seller":' || seller || ',"category":' || category
  || ',"extra":"' || extra || '"},"bid":null}'
ELSE '{"event_type":2,"person":null,"auction":null,"bid":{"auction":' || auction || ',"bidder":' || bidder
  || ',"price":' || price || ',"channel":"' || channel || '","url":"' || url || '","dateTime":"' || moment
  || '","extra":"' || extra || '"}}'
END
"""


def last_person(numbers: Numbers) -> Numbers:
    """The number of the last person up to each event; of a person itself its own."""
    return numbers // EPOCH * PERSONS + np.minimum(numbers % EPOCH, PERSONS - 1)


def last_auction(numbers: Numbers) -> Numbers:
    """The number of the last auction up to each event; before the first auction it is negative."""
    offset = numbers % EPOCH
    at = np.where(offset < PERSONS, -1, np.minimum(offset - PERSONS, AUCTIONS - 1))
    return numbers // EPOCH * AUCTIONS + at


def _person_of(random: np.random.Generator, numbers: Numbers) -> Numbers:
    """A person who is active at each event, or one of the next to come."""
    known = last_person(numbers) + 1
    active = np.minimum(known, ACTIVE)
    return known - active + random.integers(0, active + LEAD)


def _auctions(random: np.random.Generator, numbers: Numbers, now: Numbers, price: Numbers) -> dict[str, Any]:
    count = len(numbers)
    hot = random.integers(0, 4, count) > 0
    seller = np.where(hot, last_person(numbers) // HOT * HOT, _person_of(random, numbers))
    # An auction lasts on average as long as it takes until all that are in flight have been replaced.
    horizon = IN_FLIGHT * EPOCH // AUCTIONS // EVENTS_PER_MS
    return {
        "item": _texts(random, random.integers(3, 20, count)),
        "description": _texts(random, random.integers(3, 100, count)),
        "reserve": price + _prices(random, count),
        "expires": _times(now + 1 + random.integers(0, 2 * horizon, count)),
        "seller": seller + FIRST_ID,
        "category": FIRST_CATEGORY + random.integers(0, CATEGORIES, count),
    }


def _bids(random: np.random.Generator, numbers: Numbers) -> dict[str, Any]:
    count = len(numbers)
    last = np.maximum(last_auction(numbers), 0)
    oldest = np.maximum(last - IN_FLIGHT, 0)
    any_auction = oldest + random.integers(0, last - oldest + 1 + LEAD)
    auction = np.where(random.integers(0, 2, count) > 0, last // HOT * HOT, any_auction)
    # The second of each hundred, so that hot bidders are not the hot sellers.
    bidder = np.where(
        random.integers(0, 4, count) > 0, last_person(numbers) // HOT * HOT + 1, _person_of(random, numbers)
    )
    channel, url = _channels(random, count)
    return {"auction": auction + FIRST_ID, "bidder": bidder + FIRST_ID, "channel": channel, "url": url}


def _channels(random: np.random.Generator, count: int) -> tuple[pa.Array, pa.Array]:
    """A channel and an address for each bid: half of them one of four, the others one of ten thousand with a number."""
    site = "https://www.nexmark.com/"
    fixed = np.random.default_rng(len(HOT_CHANNELS))
    paths = _paths(fixed, len(HOT_CHANNELS) + CHANNELS)
    numbered = fixed.integers(0, 2**31, CHANNELS)
    names = [*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))]
    # One in ten of the others does not name its number.
    named = fixed.integers(0, 10, CHANNELS) > 0
    urls = [f"{site}{path}/item.htm?query=1" for path in paths]
    for number in np.flatnonzero(named):
        urls[len(HOT_CHANNELS) + number] += f"&channel_id={numbered[number]}"
    hot = random.integers(0, 2, count) > 0
    chosen = pa.array(
        np.where(
            hot, random.integers(0, len(HOT_CHANNELS), count), len(HOT_CHANNELS) + random.integers(0, CHANNELS, count)
        )
    )
    return pa.array(names).take(chosen), pa.array(urls).take(chosen)


def _paths(random: np.random.Generator, count: int) -> list[str]:
    words: list[str] = _texts(random, np.full(3 * count, 5)).to_pylist()
    return ["/".join(words[3 * i : 3 * i + 3]) for i in range(count)]


def _persons(random: np.random.Generator, count: int) -> dict[str, Any]:
    card = [f"{a:04d} {b:04d} {c:04d} {d:04d}" for a, b, c, d in random.integers(0, 10_000, (_POOL, 4))]
    full = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    email = [
        f"{name}@{host}.com"
        for name, host in zip(
            _texts(random, random.integers(3, 7, _POOL)).to_pylist(),
            _texts(random, random.integers(3, 5, _POOL)).to_pylist(),
            strict=True,
        )
    ]
    return {
        "name": _chosen(random, full, count),
        "email": _chosen(random, email, count),
        "card": _chosen(random, card, count),
        "city": _chosen(random, CITIES, count),
        "state": _chosen(random, STATES, count),
    }


_POOL = 4_000
"""Addresses and cards that a block of events chooses from: as many as it has persons, more or less."""


def _chosen(random: np.random.Generator, words: tuple[str, ...] | list[str], count: int) -> pa.Array:
    return pa.array(words).take(pa.array(random.integers(0, len(words), count)))


def _prices(random: np.random.Generator, count: int) -> Numbers:
    return np.round(10.0 ** (random.random(count) * 6) * 100).astype(np.int64)


def _extra(random: np.random.Generator, kinds: Numbers) -> pa.Array:
    """Letters that fill each event up to the size of its kind, a fifth more or less."""
    wanted = np.array([PERSON_BYTES - 70, AUCTION_BYTES - 110, BID_BYTES - 32])[kinds]
    return _texts(random, np.round(wanted * (0.8 + 0.4 * random.random(len(kinds)))).astype(np.int64))


def _texts(random: np.random.Generator, lengths: Numbers) -> pa.Array:
    """Texts of random letters, of these lengths."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = random.integers(ord("a"), ord("z") + 1, int(ends[-1]), dtype=np.uint8)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(letters))


def _times(ms: Numbers) -> pa.Array:
    """Times as the JSON format of both engines writes them, with three digits of a second."""
    times = pa.array(ms * 1000, pa.int64()).cast(pa.timestamp("us")).cast(pa.timestamp("ms"))
    return times.cast(pa.string())
