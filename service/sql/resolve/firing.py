"""SET 'table.exec.emit...': windows of GROUP BY that answer before they close, and again for late rows."""

from __future__ import annotations

from sqlglot import exp

from service.plan.nodes import Filter, Firing, Node, Session, WindowRows
from service.plan.table import TimeKind
from service.sql.errors import SqlError
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.group_windows import GroupWindow
from service.sql.resolve.relation import Relation

_EMIT = "table.exec.emit."


def firing_of(window: GroupWindow, relation: Relation, session: ResolveContext, at: exp.Expr) -> Firing | None:
    """Return how often `window` over `relation` answers by the settings; None for once. Raises SqlError where they do
    not fit."""
    emit = session.emit
    processing = window.field.time is TimeKind.PROCESSING
    late = emit.late and not processing
    if emit.lateness is not None and not emit.late:
        session.mistakes.note(
            f"'{_EMIT}allow-lateness' has no effect",
            detail=f"late rows count where '{_EMIT}late-fire.enabled' is true",
            at=at,
        )
    if not emit.early and not late:
        return None
    if _of_sessions(window, relation.node):
        key = f"'{_EMIT}{'early' if emit.early else 'late'}-fire.enabled'"
        raise SqlError(
            "a window of sessions answers once, when it closes",
            detail=f"{key} is set, which is for TUMBLE, HOP and CUMULATE",
            hint=f"RESET {key} before this statement",
            at=at,
        )
    early_delay = _delay("early", emit.early_delay, at) if emit.early else None
    if not late:
        return Firing(early_delay, None, 0)
    lateness = session.ttl if emit.lateness is None else emit.lateness
    if lateness == 0:
        raise SqlError(
            "late firing needs to know how late a row may be",
            detail=f"'{_EMIT}late-fire.enabled' is set, neither '{_EMIT}allow-lateness' nor 'table.exec.state.ttl' is",
            hint=f"SET '{_EMIT}allow-lateness' = '1 min'",
            at=at,
        )
    return Firing(early_delay, _delay("late", emit.late_delay, at), lateness)


def _of_sessions(window: GroupWindow, node: Node) -> bool:
    while isinstance(node, Filter):
        node = node.input
    carried = isinstance(node, WindowRows) and isinstance(node.window, Session) and not window.function
    return carried or isinstance(window.window, Session)


def _delay(which: str, delay: int | None, at: exp.Expr) -> int:
    if delay is None:
        raise SqlError(
            f"{which} firing needs to know how often",
            detail=f"'{_EMIT}{which}-fire.enabled' is set, '{_EMIT}{which}-fire.delay' is not",
            hint=f"SET '{_EMIT}{which}-fire.delay' = '10 s', or '0 s' for every batch that changes the answer",
            at=at,
        )
    return delay
