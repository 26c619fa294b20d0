"""What is measured: a query file, and the generated topics that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.nexmark.side_input import KEYS, write_database, write_text

QUERIES = Path(__file__).with_name("queries")
PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Topic:
    """A generated topic: `kind` names the maker of its rows in feed.py, `share` its part of the rows of a case; or it
    has as many as `fixed` says."""

    variable: str
    kind: str
    keys: int
    share: float = 1.0
    partitions: int = PARTITIONS
    fixed: int = 0

    def name(self, rows: int) -> str:
        spread = "" if self.partitions == PARTITIONS else f"-over-{self.partitions}"
        return f"{self.kind}-{self.keys}-{self.rows(rows)}{spread}"

    def rows(self, rows: int) -> int:
        return self.fixed or int(rows * self.share)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table of results."""

    name: str
    title: str
    query: str
    topics: tuple[Topic, ...]
    native: bool = False  # whether Spark Structured Streaming can express it
    head: tuple[str, ...] = ()
    """The files whose statements stand before those of `query`: tables that several queries share."""
    start: str = "earliest-offset"
    """Where the topics are read from, as 'scan.startup.mode' has it."""
    until: str = "latest-offset"
    """Where that ends, as 'scan.bounded.mode' has it."""
    files: Mapping[str, Callable[[Path], Path]] = field(default_factory=dict)
    """What writes the files that the query reads beside topics into a folder, by variable."""
    flink_head: tuple[str, ...] = ()
    """The files that stand before the query in Flink, where its tables are of connectors with other names."""
    flink: bool = True
    """Whether Flink can express it."""

    def names(self, rows: int) -> dict[str, str]:
        """The generated topics of `rows`, by variable."""
        return {topic.variable: topic.name(rows) for topic in self.topics}

    def for_flink(self) -> Case:
        """The case with the tables of Flink."""
        return replace(self, head=self.flink_head or self.head)

    def written(self, folder: Path) -> dict[str, str]:
        """The files of the case, written into `folder`, by variable."""
        return {variable: str(write(folder)) for variable, write in self.files.items()}

    def sql(self, bootstrap: str, group: str, output: str, topics: Mapping[str, str]) -> str:
        """The query file with its variables filled in, `topics` and files by variable: the same text for every
        engine."""
        text = "\n".join((QUERIES / f"{name}.sql").read_text() for name in (*self.head, self.query))
        values = {"BOOTSTRAP": bootstrap, "GROUP": group, "OUTPUT": output, "FROM": self.start, "UNTIL": self.until}
        for name, value in (values | dict(topics)).items():
            text = text.replace("${" + name + "}", value)
        return text


def _payments(keys: int) -> tuple[Topic, ...]:
    return (Topic("PAYMENTS", "payments", keys),)


# Tables that queries share: what they read, and where their answers go.
PAYMENTS = ("payments",)
ACCOUNTS = ("payments", "results_by_account")
WINDOWS = ("payments", "results_by_window")
_ROWS = ("payments", "results_by_payment")
ORDERS = ("orders_and_shipments", "results_by_order")
_IN_TIME = ("orders_in_time", "shipments_in_time")
_BOTH = (Topic("ORDERS", "orders", 100_000, 0.5), Topic("SHIPMENTS", "shipments", 100_000, 0.5))
_VERSIONED = (Topic("ORDERS", "orders", 100_000, 0.9), Topic("ACCOUNTS", "accounts", 100_000, 0.1))
_DENSE = (Topic("ORDERS", "orders", 1_000_000, 0.5), Topic("ACCOUNTS", "versions", 1_000_000, 0.5))
_THREE = (
    Topic("ORDERS", "orders", 100_000, 0.4),
    Topic("SHIPMENTS", "shipments", 100_000, 0.3),
    Topic("INVOICES", "invoices", 100_000, 0.3),
)

CASES = (
    Case("tumble-1k", "tumble 10 s, 1,000 keys", "tumble", _payments(1_000), native=True, head=WINDOWS),
    Case("tumble-100k", "tumble 10 s, 100,000 keys", "tumble", _payments(100_000), native=True, head=WINDOWS),
    Case("group-1k", "group by, 1,000 keys", "group_by", _payments(1_000), native=True, head=ACCOUNTS),
    Case("group-100k", "group by, 100,000 keys", "group_by", _payments(100_000), native=True, head=ACCOUNTS),
    Case("group-3m", "group by, 3,000,000 keys", "group_by", _payments(3_000_000), native=True, head=ACCOUNTS),
    Case("over-1k", "OVER RANGE 10 s, 1,000 keys", "over_range", _payments(1_000), head=PAYMENTS),
    Case("join", "regular join", "join", _BOTH, head=ORDERS),
    Case("interval-join", "interval join", "interval_join", _BOTH, native=True, head=(*_IN_TIME, "results_by_order")),
)

MORE = (
    Case("session-1k", "session with a gap of 1 s, 1,000 keys", "session", _payments(1_000), head=WINDOWS),
    Case("hop-1k", "hop 10 s every second, 1,000 keys", "hop", _payments(1_000), head=WINDOWS),
    Case("top-100k", "Top-3 of 100,000 keys", "top_n", _payments(100_000), head=_ROWS),
    Case("last-3m", "last row of 3,000,000 keys", "last_row", _payments(3_000_000), head=_ROWS),
    Case("temporal-join", "temporal join, 100,000 keys", "temporal_join", _VERSIONED, head=("orders_in_time",)),
    Case("versions-1m", "temporal join, 1,000,000 keys", "temporal_join", _DENSE, head=("orders_in_time",)),
    Case("window-join", "window join, tumble 10 s", "window_join", _BOTH, head=_IN_TIME),
    Case("three-way-join", "regular join of three tables", "three_way_join", _THREE, head=("orders_and_shipments",)),
)
"""Cases that run where they are named, since those of the table take an hour."""

_EVENTS = (Topic("EVENTS", "nexmark", 0),)

_Q13 = (
    Case(
        "q13",
        "Nexmark q13",
        "nexmark/q13",
        _EVENTS,
        head=("nexmark/source", "nexmark/side_input"),
        files={"DATABASE": write_database, "TEXT": write_text},
        flink_head=("nexmark/source", "nexmark/side_input_flink"),
    ),
    Case(
        "q13-topic",
        "Nexmark q13, side input in a topic",
        "nexmark/q13",
        (*_EVENTS, Topic("SIDE_INPUT", "side_input", KEYS, fixed=KEYS)),
        head=("nexmark/source", "nexmark/side_input_topic"),
        flink=False,
    ),
)
"""The side input is a file that each task of Flink reads into memory, and a table of SQLite for Tailrace, which asks no
files; then a topic, which is read to its end before the first bid is, and which Flink refuses to join so."""

NEXMARK = (
    *(
        Case(name, f"Nexmark {name}", f"nexmark/{name}", _EVENTS, head=("nexmark/source",))
        for name in (f"q{number}" for number in range(24))
        # q6 is not valid in Flink, q10 writes files, and q14 needs a function written in Java.
        if name not in ("q6", "q10", "q13", "q14")
    ),
    *_Q13,
)
"""The queries of Nexmark over the events of one topic; their answers go nowhere."""
