"""The queries of Nexmark about sessions, windows of processing time and the first rows of a key, over few bids.

Their texts are those of `bench/queries/nexmark`. The bids are those of the generator, but half a second to two apart
and up to four seconds old, so that sessions end and rows come out of order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.cases import QUERIES
from bench.compare.streams import Case
from bench.nexmark.events import events

NAMES = ("q11", "q12", "q18", "q19")
EVENTS = 160

BID = {
    "columns": {
        "auction": "BIGINT",
        "bidder": "BIGINT",
        "price": "BIGINT",
        "channel": "STRING",
        "url": "STRING",
        "dateTime": "TIMESTAMP(3)",
        "extra": "STRING",
    },
    "watermark": ["dateTime", "`dateTime` - INTERVAL '4' SECOND"],
}

_VIEW = re.compile(r"CREATE VIEW [^;]*")
_QUERY = re.compile(r"INSERT INTO answers\s+([^;]*)")


def nexmark() -> Iterator[Case]:
    """Yield each query, with the views that it reads, over the same bids."""
    arrivals = _arrivals()
    for name in NAMES:
        text = (QUERIES / "nexmark" / f"{name}.sql").read_text()
        (query,) = _QUERY.findall(text)
        case = {"name": f"Nexmark {name}", "tables": {"bid": BID}, "query": query.strip(), "arrivals": arrivals}
        yield {**case, "views": _VIEW.findall(text)}


def _arrivals() -> list[list[Any]]:
    chosen = np.random.default_rng(11)
    made, _ = events(chosen, np.arange(EVENTS), 0)
    bids = made.filter(np.equal(made.column("kind").to_numpy(), 2)).to_pylist()
    clock = 0
    found = []
    for bid in bids:
        clock += int(chosen.integers(500, 2_000))
        seconds, part = divmod(60_000 + clock - int(chosen.integers(0, 4_000)), 1_000)
        time = f"2024-01-01 00:{seconds // 60:02}:{seconds % 60:02}.{part:03}"
        row = [bid["auction"], bid["bidder"], bid["price"], bid["channel"], bid["url"], time, bid["extra"]]
        found.append(["bid", "+I", row])
    return found
