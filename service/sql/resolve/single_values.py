"""SINGLE_VALUE: the value of the only row of a group. A group of several rows is a row that cannot be computed."""

from __future__ import annotations

from sqlglot import exp

from service.sql.errors import SqlError
from service.sql.functions.logic import ONLY_ROW
from service.sql.resolve.syntax import call_name, replaced

_NAME = "SINGLE_VALUE"


def with_single_values(node: exp.Expr) -> exp.Expr:
    """Return `node` with the least value and the number of the rows in place of each SINGLE_VALUE; raises SqlError."""
    return replaced(node, _part)


def _part(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Window):
        return node
    call = node.this if isinstance(node, exp.Filter) else node
    if call_name(call) != _NAME:
        return None
    if len(call.expressions) != 1 or isinstance(call.expressions[0], exp.Star):
        raise SqlError(f"{_NAME} takes 1 argument", at=call)
    least = exp.Anonymous(this="MIN", expressions=[call.expressions[0].copy()])
    rows = exp.Anonymous(this="COUNT", expressions=[exp.Star()])
    parts = []
    for part in (least, rows):
        part.update_positions(call)
        parts.append(exp.Filter(this=part, expression=node.expression.copy()) if node is not call else part)
    only = exp.Anonymous(this=ONLY_ROW, expressions=parts)
    only.update_positions(call)
    return only
