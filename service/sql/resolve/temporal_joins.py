"""Temporal joins: each left row with the version of a table's row at its own time.

Written JOIN table FOR SYSTEM_TIME AS OF left.ts, or with a temporal table function, LATERAL TABLE(Rates(left.ts)).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import JoinKind, TemporalJoin
from service.plan.properties import event_time
from service.plan.table import TimeKind
from service.plan.types import BOOLEAN
from service.plan.walk import fields
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.from_clause import resolve_relation
from service.sql.resolve.join_conditions import Conditions, Equality, sort_conditions
from service.sql.resolve.join_inputs import Keyed
from service.sql.resolve.join_nodes import compared, compiled_conditions, joined_columns
from service.sql.resolve.kept_times import with_time
from service.sql.resolve.lookup_joins import looked_up, lookup_join
from service.sql.resolve.processing_time import retimed
from service.sql.resolve.relation import Relation
from service.sql.resolve.skew import Skew, spread_all
from service.sql.resolve.temporal_functions import (
    declared_function,
    function_call,
    function_versions,
    resolve_function,
)
from service.sql.resolve.versions import NoVersions, VersionStream, version_stream
from service.sql.resolve.windows import time_attribute
from service.sql.scope import INTERNAL, Scope, ScopeColumn

_AS_OF = "FOR SYSTEM_TIME AS OF"


def is_temporal(source: exp.Expr) -> bool:
    """Return whether the item of FROM stands for versions of a table."""
    return bool(source.args.get("version")) or function_call(source) is not None


def resolve_versioned(source: exp.Expr, session: ResolveContext) -> Relation:
    """Return the table of which a temporal join reads versions, under its alias."""
    if (call := function_call(source)) is not None:
        return resolve_function(source, call, session)
    version = source.args["version"]
    if version.name != "TIMESTAMP" or version.args.get("kind") != "AS OF":
        raise session.give_up(SqlError("versions of a table are read FOR SYSTEM_TIME AS OF a time", at=version))
    plain = source.copy()
    plain.set("version", None)
    return resolve_relation(plain, session)


def temporal_join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    conditions: Sequence[exp.Expr],
    ttl: int,
    source: exp.Expr,
    hot: list[Skew],
    session: ResolveContext,
) -> Relation:
    """Return each row of `left` with the row that `right`, the relation of `source`, had for its key at the row's
    time. Keys of `left` that it spreads are then removed from `hot`."""
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise session.give_up(
            SqlError(
                f"a temporal join cannot be {kind.value.upper()}",
                detail="rows of the left input meet versions of the right one, which are no rows of their own",
                hint="write JOIN or LEFT JOIN",
                at=source,
            )
        )
    with session.mistakes.collecting(source):
        if looked_up(right.node) is not None:
            return lookup_join(left, right, kind, conditions, ttl, source, session)
        return _joined(left, right, kind, conditions, ttl, source, hot, session)
    raise QueryRejected


def _joined(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    nodes: Sequence[exp.Expr],
    ttl: int,
    at: exp.Expr,
    hot: list[Skew],
    session: ResolveContext,
) -> Relation:
    name = right.scope.qualifiers[0] if right.scope.qualifiers else "the right input"
    left, left_time = _left_time(at, left, session)
    stream, version_time = _versions(right, name, at, session)
    right_time = _right_time(left.scope.field(left_time).time, right, version_time, name, at)
    right = _with_versions(right, stream)
    found = sort_conditions(nodes, left, right, session)
    chosen, rest = _keys(found, stream.key, len(left.scope))
    lacking = [right.scope.field(k).name for k in stream.key if k not in chosen]
    if lacking:
        raise SqlError(
            f'this join does not compare the whole primary key of "{name}"',
            detail=f"there is no equality with {' and '.join(lacking)}",
            hint=" AND ".join(f"add {name}.{column} = <column>" for column in lacking),
            at=at,
        )
    rest += compiled_conditions([node for _, node in found.bounds], left, right, session)
    rest += [Column(len(left.scope) + c, BOOLEAN, right.scope.field(c).name) for c in stream.conditions]
    conditions = Conditions([chosen[k] for k in stream.key], rest=rest)
    # Versions of one key stay together: only left rows are spread.
    mine = [skew for skew in hot if skew.side in left.scope.qualifiers]
    hot[:] = [skew for skew in hot if skew not in mine]
    left, right, conditions = spread_all(left, right, kind, conditions, mine, session)
    hot += mine
    keyed = Keyed.of(left, right, Conditions(conditions.keys), conditions.rest, session.place(at))
    own = keyed.left.scope
    theirs = joined_columns(keyed, kind)[len(own) :]
    scope = Scope((*own.columns, *Scope(theirs).without_time().columns))
    node = TemporalJoin(
        left=keyed.left.node,
        right=keyed.right.node,
        kind=kind,
        left_keys=keyed.left_keys,
        right_keys=keyed.right_keys,
        left_time=left_time,
        right_time=right_time,
        residual=keyed.residual,
        fields=scope.fields,
        untimed_deletes=stream.untimed_deletes and right_time is not None,
        ttl=ttl,
        waits=right_time is None and session.waits_for_tables,
        place=session.place(at),
    )
    joined = Relation(node, scope, left.windows)
    return joined if right_time is None else retimed(joined, session.place(at), session)


def _left_time(at: exp.Expr, left: Relation, session: ResolveContext) -> tuple[Relation, int]:
    """The left input, and the position of its time attribute that the versions are asked for by."""
    call = function_call(at)
    if call is not None and len(call.expressions) != 1:
        raise SqlError(f"{call.name} takes one argument, a time attribute of the left input", at=call)
    user = _AS_OF if call is None else f"the temporal table function {call.name}"
    node = at.args["version"].expression if call is None else call.expressions[0]
    left = with_time(left, node, session)
    return left, time_attribute(node, left.scope, user)


def _versions(right: Relation, name: str, at: exp.Expr, session: ResolveContext) -> tuple[VersionStream, int | None]:
    """The versions of the right input, and the position of their event time, if they have one."""
    call = function_call(at)
    if call is not None:
        return function_versions(declared_function(call, session), right)
    try:
        return version_stream(right.node), event_time(right.node)
    except NoVersions as error:
        raise SqlError(f'"{name}" has no versions', detail=error.primary, hint=error.hint, at=at) from error


def _right_time(kind: TimeKind, right: Relation, time: int | None, name: str, at: exp.Expr) -> int | None:
    """The position of the time of versions; None in processing time, where they need none."""
    if kind is TimeKind.PROCESSING:
        return None
    if time is None or right.scope.field(time).time is not TimeKind.EVENT:
        raise SqlError(
            f'"{name}" has no versions by time',
            detail="it has no event-time attribute",
            hint="declare WATERMARK FOR <column> AS <column> with the table",
            at=at,
        )
    return time


def _with_versions(right: Relation, stream: VersionStream) -> Relation:
    """The relation reading its versions, with the columns that they add, which no name of the query finds."""
    added = fields(stream.node)[len(right.scope) :]
    hidden = tuple(ScopeColumn(f, alias=f"{INTERNAL}version{i}") for i, f in enumerate(added))
    return Relation(stream.node, Scope(right.scope.columns + hidden))


def _keys(found: Conditions, key: tuple[int, ...], width: int) -> tuple[dict[int, Equality], list[Expression]]:
    """An equality for each column of the primary key, and all other conditions over left's `width` columns, then
    right's. A column that had to be cast to be compared is still the key."""
    chosen: dict[int, Equality] = {}
    rest = list(found.rest)
    for equality in found.keys:
        column = _compared(equality[1])
        if column in key and column not in chosen:
            chosen[column] = equality
            continue
        rest.append(compared(equality, width))
    return chosen, rest


def _compared(expression: Expression) -> int | None:
    """The column that `expression` is, or is a cast of."""
    match expression:
        case Column(index=index):
            return index
        case Call(name="CAST", arguments=(Column(index=index),)):
            return index
        case _:
            return None
