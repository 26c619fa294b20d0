"""Lookup joins: each left row with the rows that a table of a database has for its key when the row comes.

Written JOIN table FOR SYSTEM_TIME AS OF left.proctime, where the table is one of 'connector' = 'jdbc'.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import JoinKind, LookupJoin, Node, Scan
from service.plan.table import TimeKind
from service.plan.types import DataType, Decimal, Simple, Text, flink
from service.plan.walk import in_order
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast, common_type
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.join_conditions import Conditions, Equality, sort_conditions
from service.sql.resolve.join_inputs import Keyed
from service.sql.resolve.join_nodes import compared, compiled_conditions, joined_columns
from service.sql.resolve.kept_times import with_time
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import positions
from service.sql.resolve.windows import time_attribute
from service.sql.scope import Scope

_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})


def looked_up(node: Node) -> Scan | None:
    """Return the table of a database that `node` reads, if it reads one."""
    return next((n for n in in_order([node]) if isinstance(n, Scan) and n.table.lookup is not None), None)


def lookup_join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    nodes: Sequence[exp.Expr],
    ttl: int,
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    """Join each row of `left` with what `right`, over a table of a database, has for its key. Raises SqlError."""
    name = right.scope.qualifiers[0] if right.scope.qualifiers else "the right input"
    if not isinstance(right.node, Scan):
        raise SqlError(
            f'"{name}" cannot be looked up',
            detail="it is a query over a table of a database",
            hint="join the table itself, and write conditions behind ON; or make a view in the database",
            at=at,
        )
    version = at.args.get("version")
    if version is None:
        raise SqlError(f'"{name}" has no versions by time', hint="write FOR SYSTEM_TIME AS OF <left>.<proctime>", at=at)
    left = with_time(left, version.expression, session)
    time = left.scope.field(time_attribute(version.expression, left.scope, "FOR SYSTEM_TIME AS OF"))
    if time.time is not TimeKind.PROCESSING:
        raise SqlError(
            f'"{name}" has no versions by time',
            detail=f'"{time.name}" is an event time, and a database tells what its table holds now',
            hint="declare a column AS PROCTIME() with the left table, and write FOR SYSTEM_TIME AS OF it",
            at=version,
        )
    fixed = {id(node): equality for node in nodes if (equality := _constant(node, right, session)) is not None}
    found = sort_conditions([node for node in nodes if id(node) not in fixed], left, right, session)
    found.keys += fixed.values()
    keys, rest = _keys(found, right, len(left.scope), name, at)
    if not keys:
        raise SqlError(
            f'this join does not say which rows of "{name}" are looked up',
            detail="there is no equality between a column of it and the left input, or a constant",
            hint=f"add {name}.<column> = <column>",
            at=at,
        )
    rest += compiled_conditions([node for _, node in found.bounds], left, right, session)
    keyed = Keyed.of(left, right, Conditions(keys), rest, session.place(at))
    own = keyed.left.scope
    theirs = joined_columns(keyed, kind)[len(own) :]
    scope = Scope((*own.columns, *theirs))
    node = LookupJoin(
        left=keyed.left.node,
        right=keyed.right.node,
        kind=kind,
        left_keys=keyed.left_keys,
        right_keys=keyed.right_keys,
        residual=keyed.residual,
        fields=scope.fields,
        ttl=ttl,
        place=session.place(at),
    )
    return Relation(node, scope, left.windows)


def _constant(node: exp.Expr, right: Relation, session: ResolveContext) -> Equality | None:
    """The equality of a column of the table with a constant of its type, which the database is asked by, too."""
    if not isinstance(node, exp.EQ):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        # First of all what it is: columns of USING are places among those of both sides.
        if not isinstance(one, exp.Column) or not isinstance(other, exp.Literal | exp.Neg):
            continue
        if not positions(one, right.scope):
            continue
        column, value = session.compile(one, right.scope), session.compile(other, Scope())
        if isinstance(column, Column) and value is not None and common_type([column.type, value.type]) == column.type:
            return cast(value, column.type, implicit=True, zone=session.zone), column, False
    return None


def _keys(
    found: Conditions, right: Relation, width: int, name: str, at: exp.Expr
) -> tuple[list[Equality], list[Expression]]:
    """The equalities with a column of the table, each column once, and all other conditions over left's `width`
    columns, then right's."""
    chosen: dict[int, Equality] = {}
    rest = list(found.rest)
    for equality in found.keys:
        mine, theirs, safe = equality
        column = _column(theirs)
        if column is None or safe or column in chosen:
            rest.append(compared(equality, width))
            continue
        declared = right.scope.field(column)
        if isinstance(theirs, Call) and not _comparable(declared.type, mine.type):
            raise SqlError(
                f'"{name}" cannot be looked up by {declared.name}',
                detail=f"it is {flink(declared.type)}, and is compared with {flink(mine.type)}",
                hint=f"cast the other side: CAST(... AS {flink(declared.type)})",
                at=at,
            )
        chosen[column] = (mine, Column(column, declared.type, declared.name), False)
    return [chosen[column] for column in sorted(chosen)], rest


def _column(expression: Expression) -> int | None:
    """The column that `expression` is, or is a cast of."""
    match expression:
        case Column(index=index) | Call(name="CAST", arguments=(Column(index=index),)):
            return index
        case _:
            return None


def _comparable(one: DataType, other: DataType) -> bool:
    """Whether values of both types are equal in the database where they are equal here."""
    return (_is_exact(one) and _is_exact(other)) or (_is_text(one) and _is_text(other))


def _is_exact(kind: DataType) -> bool:
    return isinstance(kind, Decimal) or (isinstance(kind, Simple) and kind.name in _NUMBERS)


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, Text) or (isinstance(kind, Simple) and kind.name == "STRING")
