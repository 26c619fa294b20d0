"""What Flink answered to a list of expressions (flink_expressions.json), and what we answer to them."""

from __future__ import annotations

import base64
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from service.plan import types
from service.plan.expressions import Expression, render
from service.plan.types import DataType
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.sharing import deterministic
from tests.sql.evaluation import NOW, SETTINGS, compiled, parsed_type

ORACLE = Path(__file__).with_name("flink_expressions.json")
FAILS = "fails"
REFUSED = "refused"

DIFFERENCES: dict[str, list[str]] = {
    entry["reason"]: entry["expressions"]
    for entry in tomllib.loads(Path(__file__).with_name("flink_differences.toml").read_text())["difference"]
}
"""The names of the expressions that we answer otherwise on purpose, by the reason."""


@dataclass(frozen=True)
class Case:
    """One expression: Flink's type and its answer to each row, as text, FAILS where a row fails. `type` is REFUSED for
    an expression that Flink does not take."""

    group: str
    sql: str
    zone: str
    columns: dict[str, DataType]
    rows: tuple[dict[str, Any], ...]
    type: str
    answers: tuple[str | None, ...]

    @property
    def name(self) -> str:
        return f"{self.group}: {self.sql}"


@cache
def cases() -> tuple[Case, ...]:
    """All expressions of the oracle."""
    return tuple(_cases())


def _cases() -> Iterator[Case]:
    for group in json.loads(ORACLE.read_text(), parse_float=Decimal):
        row = parsed_type(f"ROW<{group['columns']}>")
        assert isinstance(row, types.Row)
        columns = dict(zip(row.names, row.types, strict=True))
        for expression in group["expressions"]:
            answers = tuple(FAILS if isinstance(a, dict) else a for a in expression.get("answers", ()))
            type_ = REFUSED if "refused" in expression else expression["type"].removesuffix(" NOT NULL")
            yield Case(group["name"], expression["sql"], group["zone"], columns, tuple(group["rows"]), type_, answers)


def ours(case: Case) -> tuple[str, tuple[str | None, ...]]:
    """Our type and answers, in the form of the oracle's; of a refusal, why."""
    return _group(case.group)[case.sql]


@cache
def _group(group: str) -> dict[str, tuple[str, tuple[str | None, ...]]]:
    """Ours for all expressions of a group, computed by one statement."""
    found: dict[str, tuple[str, tuple[str | None, ...]]] = {}
    computable: dict[str, tuple[str, str]] = {}
    members = [c for c in cases() if c.group == group]
    for case in members:
        try:
            expression = compiled(case.sql, {name: (type_, "") for name, type_ in case.columns.items()}, case.zone)
            text = render(_shown(expression, case.zone))
            # A random number may not stand in TRY, and does not fail.
            item = (
                f"TRY({text}), TRY(struct_pack(a := {text})) IS NULL" if deterministic(expression) else f"{text}, false"
            )
            computable[case.sql] = types.flink(expression.type), item
        except SqlError as error:
            found[case.sql] = REFUSED, (str(error), error.detail)
    columns = list(zip(*_computed([item for _, item in computable.values()], members[0]), strict=True))
    for i, (sql, (type_, _)) in enumerate(computable.items()):
        answers = (FAILS if failed else _text(value) for value, failed in zip(*columns[2 * i : 2 * i + 2], strict=True))
        found[sql] = type_, tuple(answers)
    return found


def _shown(expression: Expression, zone: str) -> Expression:
    if types.arrow(expression.type) == types.arrow(types.BYTES):
        return expression
    return cast(expression, types.STRING, zone=zone)


def _text(value: Any) -> str | None:
    return value.hex() if isinstance(value, bytes) else value


def _computed(items: Sequence[str], case: Case) -> list[tuple[Any, ...]]:
    """Each of `items` for each row."""
    values = " UNION ALL ".join(
        "SELECT " + ", ".join(f"{_value(r.get(n), t)} AS c{i}" for i, (n, t) in enumerate(case.columns.items()))
        for r in case.rows
    )
    # Materialized rows, so that expressions are computed when they are read and not when they are planned.
    statement = f"WITH input AS MATERIALIZED ({values}) SELECT {', '.join(items)} FROM input"
    connection = duckdb.connect(config=SETTINGS)
    return connection.execute(statement, {"now": NOW} if "$now" in statement else None).fetchall()


def _value(value: Any, type_: DataType) -> str:
    """A value of the oracle's rows as DuckDB text."""
    target = types.duckdb(type_)
    if value is None:
        return f"CAST(NULL AS {target})"
    match type_:
        case types.Array(element):
            return f"CAST([{', '.join(_value(v, element) for v in value)}] AS {target})"
        case types.Map(key, element):
            keys = ", ".join(_value(k, key) for k in value)
            return f"CAST(map([{keys}], [{', '.join(_value(v, element) for v in value.values())}]) AS {target})"
        case types.Row(names, fields):
            inner = ", ".join(f"{n} := {_value(value[n], t)}" for n, t in zip(names, fields, strict=True))
            return f"CAST(struct_pack({inner}) AS {target})"
    if type_ == types.BYTES:
        return f"unhex('{base64.b64decode(value).hex()}')"
    text = str(value).replace("'", "''")
    if isinstance(type_, types.TimestampLtz):
        text = text.removesuffix("Z")
    return f"CAST('{text}' AS {target})"
