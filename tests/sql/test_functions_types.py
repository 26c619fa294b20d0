"""Every row of the function table makes text that DuckDB takes, of exactly the type that it promises."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest

from service.plan import types
from service.plan.expressions import Column, Expression, Literal, render
from service.sql.compiler.function_calls import applied
from service.sql.errors import Mistakes, SqlError
from service.sql.expressions import literals
from service.sql.expressions.context import Context
from service.sql.functions import FUNCTIONS
from service.sql.functions.signature import KINDS, Overload
from service.sql.parse.source import read_source
from tests.sql.evaluation import NOW, SETTINGS, Columns

# A column for each kind of parameter.
SAMPLES: Columns = {
    "STRING": (types.STRING, "'ab'"),
    "BYTES": (types.BYTES, "'ab'::BLOB"),
    "BOOLEAN": (types.BOOLEAN, "true"),
    "INT": (types.TINYINT, "2"),
    "BIGINT": (types.BIGINT, "3"),
    "INTEGER": (types.SMALLINT, "2"),
    "DECIMAL": (types.Decimal(10, 2), "1.5"),
    "EXACT": (types.BIGINT, "2"),
    "APPROXIMATE": (types.FLOAT, "1.5"),
    "DOUBLE": (types.DOUBLE, "1.5"),
    "NUMERIC": (types.Decimal(5, 1), "1.5"),
    "DATE": (types.DATE, "DATE '2024-01-31'"),
    "TIME": (types.Time(0), "TIME '10:00:00'"),
    "TIMESTAMP": (types.Timestamp(3), "TIMESTAMP '2024-01-31 10:00:00'"),
    "TIMESTAMP_LTZ": (types.TimestampLtz(3), "TIMESTAMP '2024-01-31 10:00:00'"),
    "MOMENT": (types.TimestampLtz(6), "TIMESTAMP '2024-01-31 10:00:00'"),
    "ARRAY": (types.Array(types.STRING), "['a', NULL]"),
    "MAP": (types.Map(types.STRING, types.INT), "map {'a': 1}"),
    "ROW": (types.Row(("x",), (types.INT,)), "{'x': 1}"),
    "ANY": (types.STRING, "'a'"),
}
CONSTANTS: dict[str, list[Literal]] = {
    "STRING": [literals.string(text) for text in ("UTC", "yyyy", "UTF-8", "HOST", "(a)")],
    "INT": [literals.number("1"), literals.number("256")],
    "BIGINT": [literals.number("256")],
    "INTERVAL": [Literal("INTERVAL '5 milliseconds'", types.Interval(months=False))],
    "MONTHS": [Literal("INTERVAL '5 months'", types.Interval(months=True))],
}
MADE = ("BOOLEAN", "ARRAY", "MAP", "INTEGER", "TIMESTAMP")


def candidates(kind: str) -> list[Expression]:
    columns = [
        Column(i, t) for i, (k, (t, _)) in enumerate(SAMPLES.items()) if k == kind or (kind == "ANY" and k in MADE)
    ]
    return [*columns, *CONSTANTS.get(kind, []), literals.null()]


def calls(overload: Overload) -> Iterator[tuple[Expression, ...]]:
    """Arguments that an overload may be given: columns, constants and NULL in all places."""
    more = overload.parameters and overload.parameters[-1].endswith("*")
    kinds = overload.kinds(len(overload.parameters) + 1 if more else len(overload.parameters)) or ()
    return itertools.islice(itertools.product(*map(candidates, kinds)), 50)


def plain(type_: str) -> str:
    return type_.replace(" ", "").replace('"', "")


def test_there_is_a_sample_for_every_kind_of_parameter():
    assert set(KINDS) == set(SAMPLES) | set(CONSTANTS)


def expressions(name: str) -> list[Expression]:
    """The function `name` of all arguments that it takes."""
    context = Context(Mistakes(read_source("test.sql", "", {})), "Europe/Berlin")
    found = []
    for arguments in itertools.chain.from_iterable(map(calls, FUNCTIONS[name])):
        with contextlib.suppress(SqlError):
            found.append(applied(name, arguments, context))
    return found


@cache
def connection() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(config=SETTINGS)
    row = ", ".join(f"CAST({v} AS {types.duckdb(t)}) AS c{i}" for i, (t, v) in enumerate(SAMPLES.values()))
    opened.execute(f"CREATE TABLE input AS SELECT {row}")
    return opened


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_type_that_it_promises(name):
    calls = expressions(name)
    assert calls
    texts = [render(call) for call in calls]
    statement = f"SELECT {', '.join(texts)} FROM input"
    relation = connection().sql(statement, params={"now": NOW} if "$now" in statement else None)
    for call, text, type_ in zip(calls, texts, relation.types, strict=True):
        if not isinstance(call.type, types.Interval) and call.type != types.NULL:
            assert plain(str(type_)) == plain(types.duckdb(call.type)), text
