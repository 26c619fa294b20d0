"""Streams of random rows, always the same for the same seed, with queries over them, in the form of changelogs.toml."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from bench.compare.streams import Case

SEEDS = 3
ROWS = 40
_SECOND = 1_000

Arrival = list[Any]
Maker = Callable[[random.Random], list[Arrival]]

EVENTS = {"columns": {"k": "STRING", "v": "INT", "ts": "TIMESTAMP(3)"}, "watermark": ["ts", "ts - INTERVAL '5' SECOND"]}
SALES = {"columns": {"k": "STRING", "v": "INT"}, "mode": "retract"}
NAMES = {"columns": {"k": "STRING", "w": "INT"}, "mode": "retract"}
ACCOUNTS = {"columns": {"id": "INT NOT NULL", "k": "STRING", "v": "INT"}, "key": ["id"], "mode": "upsert"}

_OVER = "PARTITION BY k ORDER BY ts {} BETWEEN {} PRECEDING AND CURRENT ROW"
_JOINED = "SELECT s.k AS sk, s.v, n.k AS nk, n.w FROM s {} JOIN n ON s.k = n.k"
_WINDOW = "FROM TABLE({}(TABLE e, DESCRIPTOR(ts), {})) GROUP BY k, window_start, window_end"
_SEVEN = "INTERVAL '7' SECOND"
_HOPS = "INTERVAL '4' SECOND, INTERVAL '12' SECOND"
_STEPS = "INTERVAL '5' SECOND, INTERVAL '15' SECOND"
_SIX = "INTERVAL '6' SECOND"
_TOTALS = "SELECT k, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi"

QUERIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("group by", {"s": SALES}, f"{_TOTALS}, COUNT(DISTINCT v) AS d FROM s GROUP BY k"),
    ("group by and having", {"s": SALES}, "SELECT k, SUM(v) AS s FROM s GROUP BY k HAVING COUNT(*) BETWEEN 2 AND 4"),
    ("group by of upserts", {"a": ACCOUNTS}, "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS hi FROM a GROUP BY k"),
    ("distinct", {"s": SALES}, "SELECT DISTINCT k, v > 0 AS p FROM s"),
    (
        "twice grouped",
        {"s": SALES},
        "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) GROUP BY n",
    ),
    ("inner join", {"s": SALES, "n": NAMES}, _JOINED.format("")),
    ("left join", {"s": SALES, "n": NAMES}, _JOINED.format("LEFT")),
    ("left join with more conditions", {"s": SALES, "n": NAMES}, _JOINED.format("LEFT") + " AND n.w > s.v"),
    (
        "join, group by, filter",
        {"s": SALES, "n": NAMES},
        "SELECT * FROM (SELECT n.w, SUM(s.v) AS t FROM s JOIN n ON s.k = n.k GROUP BY n.w) WHERE t > 0",
    ),
    ("tumble", {"e": EVENTS}, f"{_TOTALS}, window_start {_WINDOW.format('TUMBLE', _SEVEN)}"),
    (
        "hop",
        {"e": EVENTS},
        f"{_TOTALS}, window_end {_WINDOW.format('HOP', _HOPS)}",
    ),
    (
        "cumulate",
        {"e": EVENTS},
        f"{_TOTALS}, window_end {_WINDOW.format('CUMULATE', _STEPS)}",
    ),
    (
        "over rows",
        {"e": EVENTS},
        f"SELECT k, v, ts, SUM(v) OVER w AS s, MAX(v) OVER w AS hi FROM e WINDOW w AS ({_OVER.format('ROWS', '3')})",
    ),
    (
        "over range",
        {"e": EVENTS},
        f"SELECT k, v, ts, SUM(v) OVER w AS s, COUNT(v) OVER w AS n FROM e WINDOW w AS ({_OVER.format('RANGE', _SIX)})",
    ),
    (
        "over all before",
        {"e": EVENTS},
        f"SELECT k, v, ts, SUM(v) OVER w AS s FROM e WINDOW w AS ({_OVER.format('RANGE', 'UNBOUNDED')})",
    ),
    (
        "interval join",
        {"e": EVENTS, "f": EVENTS},
        "SELECT e.k, e.ts AS a, f.ts AS b FROM e JOIN f ON e.k = f.k"
        " AND f.ts BETWEEN e.ts - INTERVAL '3' SECOND AND e.ts + INTERVAL '2' SECOND",
    ),
)


def generated() -> Iterator[Case]:
    """Every query over as many streams as there are seeds."""
    for name, tables, query in QUERIES:
        for seed in range(SEEDS):
            chosen = random.Random(f"{name} {seed}")
            yield {
                "name": f"{name}, seed {seed}",
                "query": query,
                "tables": tables,
                "arrivals": _arrivals(tables, chosen),
            }


def _arrivals(tables: dict[str, Any], chosen: random.Random) -> list[Arrival]:
    states: dict[str, list[list[Any]]] = {name: [] for name in tables}
    clock = 0
    arrivals = []
    for _ in range(ROWS):
        name = chosen.choice(list(tables))
        clock += chosen.randrange(0, 2 * _SECOND)
        kind, row = _change(tables[name], states[name], chosen, clock)
        arrivals.append([name, kind, row])
    return arrivals


def _change(table: dict[str, Any], held: list[list[Any]], chosen: random.Random, clock: int) -> tuple[str, list[Any]]:
    """A new row, or where the table retracts, now and then one that goes again."""
    mode = table.get("mode", "append")
    if mode == "append":
        # Rows are up to four seconds old, the watermark waits for five: none is late.
        return "+I", [_key(chosen), _number(chosen), _time(clock - chosen.randrange(0, 4 * _SECOND))]
    if held and chosen.random() < 0.35:
        return "-D", held.pop(chosen.randrange(len(held)))
    if mode == "retract":
        held.append([_key(chosen), _number(chosen)])
        return "+I", held[-1]
    row = [chosen.randrange(6), _key(chosen), _number(chosen)]
    held[:] = [*(other for other in held if other[0] != row[0]), row]
    return "+U", row


def _key(chosen: random.Random) -> str | None:
    return chosen.choice(["a", "b", "c", "d", None])


def _number(chosen: random.Random) -> int | None:
    return None if chosen.random() < 0.1 else chosen.randrange(-5, 10)


def _time(milliseconds: int) -> str:
    seconds, part = divmod(60 * _SECOND + milliseconds, _SECOND)
    return f"2024-01-01 00:{seconds // 60:02}:{seconds % 60:02}.{part:03}"
