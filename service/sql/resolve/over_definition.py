"""The definition of an OVER call: PARTITION BY, ORDER BY and the frame, its own and those of a named window."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from service.sql.errors import SqlError, did_you_mean
from service.sql.resolve.syntax import replaced

_PARTS = ("partition_by", "order", "spec")


def named_windows(select: exp.Select) -> dict[str, exp.Window]:
    """Return what WINDOW declares, by name."""
    return {w.name: w for w in select.args.get("windows") or ()}


def definition(
    node: exp.Window, named: Mapping[str, exp.Window]
) -> tuple[list[exp.Expr], exp.Expr | None, exp.WindowSpec | None]:
    """Return PARTITION BY, ORDER BY and the frame, from the call itself and the window that it names. Raises SqlError
    if no window has the name."""
    partition = list(node.args.get("partition_by") or ())
    order, spec = node.args.get("order"), node.args.get("spec")
    alias = node.args.get("alias")
    if alias is None:
        return partition, order, spec
    name = alias.name if isinstance(alias, exp.Expr) else str(alias)
    if name not in named:
        raise SqlError(
            f'window "{name}" does not exist',
            detail=f"WINDOW declares {', '.join(named)}" if named else "the query has no WINDOW clause",
            hint=did_you_mean(name, named),
            at=node,
        )
    base_partition, base_order, base_spec = definition(named[name], {k: v for k, v in named.items() if k != name})
    return partition or base_partition, order or base_order, spec or base_spec


def spelled_out(node: exp.Expr, named: Mapping[str, exp.Window]) -> exp.Expr:
    """Return `node` with the definition of each named window inside its calls, where a rewriter finds it."""

    def part(each: exp.Expr) -> exp.Expr | None:
        if not isinstance(each, exp.Window) or each.args.get("alias") is None:
            return None
        copy = each.copy()
        copy.set("alias", None)
        for key, value in zip(_PARTS, definition(each, named), strict=True):
            copy.set(key, value)
        return copy

    return replaced(node, part)
