"""Plans built by hand, for tests of what is done with plans."""

from __future__ import annotations

from dataclasses import replace

from service.plan.expressions import Call, Column, Expression, Literal
from service.plan.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Job,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Sink,
    Tumble,
    WindowAggregate,
)
from service.plan.table import ColumnKind, Connector, Format, Table, TableColumn, TimeKind
from service.plan.types import BIGINT, BOOLEAN, STRING, DataType, Timestamp
from service.plan.walk import fields

TIME = Timestamp(3)


def table(name: str, *columns: str, key: tuple[str, ...] = (), fmt: str = "json", kind: str = "kafka") -> Table:
    """A table whose columns are 'name type': s for STRING, n for BIGINT, t for the event time."""
    types: dict[str, DataType] = {"s": STRING, "n": BIGINT, "t": TIME}
    declared = [c.split() for c in columns]
    names = [n for n, _ in declared]
    rowtime = next((i for i, (_, t) in enumerate(declared) if t == "t"), None)
    return Table(
        name=name,
        columns=tuple(TableColumn(n, types[t], ColumnKind.PHYSICAL) for n, t in declared),
        connector=Connector(kind, topics=(name,), value_format=Format(fmt)),
        key=tuple(names.index(k) for k in key),
        rowtime=rowtime,
        watermark=None if rowtime is None else Column(rowtime, TIME, names[rowtime]),
    )


ORDERS = table("orders", "user s", "amount n", "ts t", "note s")
USERS = table("users", "id s", "city s", key=("id",), fmt="debezium-json")
OUT = table("out", "a s", "b n", key=("a",), fmt="debezium-json")


def scan(of: Table) -> Scan:
    """All columns of a table."""
    return Scan(
        table=of,
        columns=tuple(range(len(of.columns))),
        fields=tuple(
            Field(c.name, c.type, time=TimeKind.EVENT if i == of.rowtime else TimeKind.NONE)
            for i, c in enumerate(of.columns)
        ),
    )


def column(node: Node, name: str) -> Column:
    """The column of that name."""
    index = next(i for i, f in enumerate(fields(node)) if f.name == name)
    return Column(index, fields(node)[index].type, name)


def at(node: Node, *names: str) -> tuple[int, ...]:
    """The positions of columns."""
    return tuple(column(node, n).index for n in names)


def project(node: Node, **expressions: str | Expression) -> Project:
    """Columns under new names."""
    values = tuple(column(node, e) if isinstance(e, str) else e for e in expressions.values())
    kept = tuple(
        Field(name, e.type, time=fields(node)[e.index].time if isinstance(e, Column) else TimeKind.NONE)
        for name, e in zip(expressions, values, strict=True)
    )
    return Project(input=node, expressions=values, fields=kept)


def number(value: int) -> Literal:
    """A BIGINT."""
    return Literal(f"CAST({value} AS BIGINT)", BIGINT, str(value))


def plus(a: Expression, b: Expression) -> Call:
    """a + b."""
    return Call("+", (a, b), BIGINT, "({0} + {1})")


def more(a: Expression, b: Expression) -> Call:
    """a > b."""
    return Call(">", (a, b), BOOLEAN, "({0} > {1})")


def both(a: Expression, b: Expression) -> Call:
    """a AND b."""
    return Call("AND", (a, b), BOOLEAN, "({0} AND {1})")


def where(node: Node, condition: Expression) -> Filter:
    """The rows for which the condition holds."""
    return Filter(input=node, condition=condition)


def total(node: Node, by: tuple[str, ...], of: str, ttl: int = 0) -> Aggregate:
    """SUM(of) AS total GROUP BY by."""
    keys = at(node, *by)
    return Aggregate(
        input=node,
        keys=keys,
        aggregates=(AggregateCall("SUM", at(node, of), BIGINT),),
        fields=(*(Field(fields(node)[k].name, fields(node)[k].type) for k in keys), Field("total", BIGINT)),
        ttl=ttl,
    )


def tumbled(node: Node, by: tuple[str, ...], of: str, size: int = 10_000) -> WindowAggregate:
    """SUM(of) AS total per tumbling window of `ts`."""
    keys = at(node, *by)
    return WindowAggregate(
        input=node,
        time=at(node, "ts")[0],
        window=Tumble(size),
        keys=keys,
        aggregates=(AggregateCall("SUM", at(node, of), BIGINT),),
        fields=(
            *(Field(fields(node)[k].name, fields(node)[k].type) for k in keys),
            Field("total", BIGINT),
            Field("window_start", TIME),
            Field("window_end", TIME),
            Field("window_time", TIME, time=TimeKind.EVENT),
        ),
    )


def joined(left: Node, right: Node, on: tuple[str, str], kind: JoinKind = JoinKind.INNER) -> Join:
    """left JOIN right ON left.a = right.b."""
    shown = fields(left) if kind in (JoinKind.SEMI, JoinKind.ANTI) else (*fields(left), *fields(right))
    return Join(
        left=left,
        right=right,
        kind=kind,
        left_keys=at(left, on[0]),
        right_keys=at(right, on[1]),
        null_safe=(False,),
        residual=None,
        fields=tuple(replace(f, time=TimeKind.NONE) for f in shown),
    )


def sink(node: Node, into: Table) -> Sink:
    """INSERT INTO into SELECT * FROM node."""
    return Sink(input=node, table=into, columns=tuple(range(len(into.columns))))


def job(*sinks: Sink) -> Job:
    """A statement set."""
    return Job(name="job", sinks=sinks)
