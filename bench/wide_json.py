"""How many JSON records of many columns are decoded in a CPU second, in process: `python -m bench.wide_json`.

A quarter of the columns each are integers, numbers with a fraction, texts and times. Records are whole, or each lacks
another column, or has a tenth of them. The tables take turns, so that a busy machine slows down all of them.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time

import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import RECORD, Decoder
from service.formats.registry import decoder
from service.plan import types as t
from service.plan.table import Connector, Format, Table, TableColumn

WIDTHS = {100: 10_000, 1_000: 1_500}
"""Columns, and records a block: about as many bytes."""
KINDS = ("whole", "one is missing", "a tenth is there")
TYPES: tuple[t.DataType, ...] = (t.BIGINT, t.DOUBLE, t.STRING, t.Timestamp(3))
ROUNDS = 7


def main() -> None:
    """Print the median of some rounds for each width and kind of records."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    sql = Sql()
    cases = {(width, kind): _case(width, kind) for width in WIDTHS for kind in KINDS}
    taken: dict[tuple[int, str], list[float]] = {case: [] for case in cases}
    for number in range(rounds + 1):
        for case, (source, records) in cases.items():
            start = time.process_time()
            decoded = source.decode(records, sql)
            if decoded.dead.num_rows:
                raise SystemExit(f"{case}: {decoded.dead.num_rows} records could not be read")
            if number:  # The first round prepares the statements.
                taken[case].append(time.process_time() - start)
    for (width, kind), times in taken.items():
        print(
            f"{width:>6,} columns, {kind:<16} {WIDTHS[width] / statistics.median(times):>10,.0f} records a CPU second"
        )


def _case(width: int, kind: str) -> tuple[Decoder, pa.Table]:
    """A decoder of `width` columns, and a block of records for it."""
    names = [f"column_{i}" for i in range(width)]
    columns = tuple(TableColumn(name, TYPES[i % 4]) for i, name in enumerate(names))
    table = Table("t", columns, Connector("kafka", topics=("t",), value_format=Format("json", {})))
    chance = random.Random(width)
    values = [_record(chance, names, kind).encode() for _ in range(WIDTHS[width])]
    made = {"value": values, "topic": ["t"] * len(values), "partition": [0] * len(values), "offset": range(len(values))}
    fields = [field for field in RECORD if field.name in made]
    records = pa.table([pa.array(made[f.name], f.type) for f in fields], names=[f.name for f in fields])
    return decoder(table, tuple(range(width))), records


def _record(chance: random.Random, names: list[str], kind: str) -> str:
    number = chance.randrange(1_000)
    values = (number, number / 4, f"text {number}", f"2020-01-01 12:30:{number % 60:02}")
    lacking = {chance.choice(names)} if kind == "one is missing" else set()
    kept = [i for i, name in enumerate(names) if name not in lacking]
    if kind == "a tenth is there":
        kept = [i for i in kept if chance.random() < 0.1]
    return json.dumps({names[i]: values[i % 4] for i in kept}, separators=(",", ":"))


if __name__ == "__main__":
    main()
