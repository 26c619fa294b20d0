"""State to be kept, and rows that come on top of it: what is measured of sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bench.cases import ACCOUNTS, ORDERS, WINDOWS, Case
from bench.feed import START_MS

Value = Callable[[int], str]
"""The value of row 0, 1, ... of a topic."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A topic: `held` makes one row for each key, `later` the rows that come afterwards, by the number of keys."""

    variable: str
    held: Value
    later: Callable[[int], Value]


@dataclass(frozen=True, slots=True)
class Workload:
    """A query without an end over streams whose rows it keeps."""

    name: str
    title: str
    query: str
    head: tuple[str, ...]
    streams: tuple[Stream, ...]

    @property
    def case(self) -> Case:
        """The query as the bench runs it."""
        return Case(self.name, self.title, self.query, (), head=self.head, until="unbounded")

    def sql(self, bootstrap: str, group: str, output: str, topics: tuple[str, ...]) -> str:
        """The query file, its streams read from `topics`."""
        variables = (stream.variable for stream in self.streams)
        return self.case.sql(bootstrap, group, output, dict(zip(variables, topics, strict=True)))


def payment_of_each(account: int) -> str:
    """One payment of that account; event time goes on by a millisecond a row."""
    return f'{{"id":{account},"account":{account},"amount":1.5,"ms":{START_MS + account}}}'


def _payments(keys: int) -> Value:
    """Payments of accounts that are known, chosen at random."""
    chosen = random.Random(1)
    return lambda number: (
        f'{{"id":{number},"account":{chosen.randrange(keys)},"amount":1.5,"ms":{START_MS + keys + number}}}'
    )


def _shipment(number: int) -> str:
    return f'{{"order_id":{number},"carrier":{number % 50},"ms":{START_MS + number}}}'


def _from(value: Value) -> Callable[[int], Value]:
    """The rows that follow those of the keys."""
    return lambda keys: lambda number: value(keys + number)


_PAYMENTS = (Stream("PAYMENTS", payment_of_each, _payments),)
_BOTH = (
    Stream("ORDERS", payment_of_each, _from(payment_of_each)),
    Stream("SHIPMENTS", _shipment, _from(_shipment)),
)

GROUP_BY = Workload("group-by", "group by, 2 aggregates", "group_by", ACCOUNTS, _PAYMENTS)
WORKLOADS = (
    GROUP_BY,
    Workload("window", "tumble, 2 aggregates", "tumble_day", WINDOWS, _PAYMENTS),
    Workload("join", "regular join, a row a side", "join", ORDERS, _BOTH),
)
