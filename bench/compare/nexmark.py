"""The queries of Nexmark over few events.

Their texts are those of `bench/queries/nexmark`. The events are those of the generator, but half a second to two apart
and up to four seconds old, so that windows and sessions end and rows come out of order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.cases import QUERIES
from bench.compare.streams import Case
from bench.nexmark.events import events

NAMES = tuple(f"q{number}" for number in range(24) if number not in (6, 10, 14))
"""q6 is not valid in Flink, q10 writes files, and q14 needs a function written in Java."""

EVENTS = 1_000
BIDS = 8
"""One bid in this many is taken, so that there are persons and auctions enough."""

UPSERTED = {"q9": [0]}
"""The columns by which Flink's answer replaces rows."""

_TIME = ["dateTime", "`dateTime` - INTERVAL '4' SECOND"]
TABLES = {
    "person": {
        "columns": {
            "id": "BIGINT",
            "name": "STRING",
            "emailAddress": "STRING",
            "creditCard": "STRING",
            "city": "STRING",
            "state": "STRING",
            "dateTime": "TIMESTAMP(3)",
            "extra": "STRING",
        },
        "watermark": _TIME,
    },
    "auction": {
        "columns": {
            "id": "BIGINT",
            "itemName": "STRING",
            "description": "STRING",
            "initialBid": "BIGINT",
            "reserve": "BIGINT",
            "dateTime": "TIMESTAMP(3)",
            "expires": "TIMESTAMP(3)",
            "seller": "BIGINT",
            "category": "BIGINT",
            "extra": "STRING",
        },
        "watermark": _TIME,
    },
    "bid": {
        "columns": {
            "auction": "BIGINT",
            "bidder": "BIGINT",
            "price": "BIGINT",
            "channel": "STRING",
            "url": "STRING",
            "dateTime": "TIMESTAMP(3)",
            "extra": "STRING",
        },
        "watermark": _TIME,
    },
    "side_input": {"columns": {"key": "BIGINT", "value": "STRING"}, "mode": "lookup"},
}
"""By name, in the order of the kinds of events; the last one is a table of a database."""

_FIELDS = (
    ("id", "name", "email", "card", "city", "state", "time", "extra"),
    ("id", "item", "description", "price", "reserve", "time", "ends", "seller", "category", "extra"),
    ("auction", "bidder", "price", "channel", "url", "time", "extra"),
)
"""The columns of the generator, by kind; `time` and `ends` are ours."""

_VIEW = re.compile(r"CREATE VIEW [^;]*")
_QUERY = re.compile(r"INSERT INTO answers\s+([^;]*)")


def nexmark() -> Iterator[Case]:
    """Yield each query, with the views that it reads, over the same events."""
    arrivals = _arrivals()
    for name in NAMES:
        text = (QUERIES / "nexmark" / f"{name}.sql").read_text()
        (query,) = _QUERY.findall(text)
        views = _VIEW.findall(text)
        read = " ".join([query, *views])
        tables = {table: declared for table, declared in TABLES.items() if re.search(rf"\b{table}\b", read)}
        case = {"name": f"Nexmark {name}", "tables": tables, "query": query.strip(), "views": views}
        case |= {"upserted": UPSERTED[name]} if name in UPSERTED else {}
        yield {**case, "arrivals": [arrival for arrival in arrivals if arrival[0] in tables]}


def _arrivals() -> list[list[Any]]:
    chosen = np.random.default_rng(11)
    made, _ = events(chosen, np.arange(EVENTS), 0)
    names = list(TABLES)
    clock = bids = 0
    found: list[list[Any]] = []
    for event in made.to_pylist():
        kind = event["kind"]
        bids += kind == 2
        if kind == 2 and bids % BIDS:
            continue
        clock += int(chosen.integers(500, 2_000))
        at = clock - int(chosen.integers(0, 4_000))
        event |= {"time": _time(at), "ends": _time(at + int(chosen.integers(5_000, 60_000)))}
        found.append([names[kind], "+I", [event[field] for field in _FIELDS[kind]]])
    keys = sorted({row[0] for table, _, row in found if table == "bid"})
    # Every second one has no match.
    side = [["side_input", "+I", [key, f"value {key}"]] for key in keys[::2]]
    return side + found


def _time(milliseconds: int) -> str:
    seconds, part = divmod(60_000 + milliseconds, 1_000)
    return f"2024-01-01 00:{seconds // 60:02}:{seconds % 60:02}.{part:03}"
