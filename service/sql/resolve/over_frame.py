"""The frame of an OVER window: ROWS or RANGE, from where up to where."""

from __future__ import annotations

from sqlglot import exp

from service.plan.nodes import NEIGHBOURS, Frame
from service.sql.errors import SqlError
from service.sql.expressions.literals import interval_value

MOST_ROWS = 2**31 - 1
"""The longest frame of rows, all of which are kept."""


def frame_of(spec: exp.WindowSpec | None, function: str) -> Frame:
    """Return the frame; without one, all rows up to the current one: by time for aggregates, as in the standard. Raises
    SqlError for a frame that is not computed."""
    if spec is None:
        return Frame(rows=function in ("ROW_NUMBER", *NEIGHBOURS), preceding=None)
    rows = str(spec.args["kind"]).upper() == "ROWS"
    start = _edge(spec, "start", rows=rows)
    end = 0 if spec.args.get("end") is None else _edge(spec, "end", rows=rows)
    if end is None:
        raise SqlError(
            "a frame ends at the current row, or a number of rows or an interval before or after it",
            detail="UNBOUNDED FOLLOWING needs all rows of a partition, which a stream never has",
            hint="write how far it reaches: 10 FOLLOWING, INTERVAL '1' MINUTE FOLLOWING",
            at=spec,
        )
    if start is None:
        if end < 0:
            raise SqlError(
                "a frame of all rows ends at the current row or behind it",
                hint="bound its start, or take LAG of an aggregate in a query inside",
                at=spec,
            )
        return Frame(rows, None, end)
    if start > end:
        raise SqlError("the frame ends before it starts", hint="write the end that is further back first", at=spec)
    return Frame(rows, -start, end)


def _edge(spec: exp.WindowSpec, name: str, *, rows: bool) -> int | None:
    """How far behind the current row an end of the frame lies, less than 0 before it; None if it is unbounded."""
    value, side = spec.args[name], str(spec.args.get(f"{name}_side")).upper()
    if value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        if name == "start" and side != "PRECEDING":
            raise SqlError(
                "a frame cannot start with UNBOUNDED FOLLOWING",
                detail="that is behind the last row",
                hint="start with UNBOUNDED PRECEDING, CURRENT ROW, or a distance from it",
                at=spec,
            )
        if name == "end" and side != "FOLLOWING":
            raise SqlError(
                "a frame cannot end with UNBOUNDED PRECEDING",
                detail="that is before the first row",
                hint="end with CURRENT ROW, a distance from it, or UNBOUNDED FOLLOWING",
                at=spec,
            )
        return None
    assert isinstance(value, exp.Expr)
    length = _rows(value) if rows else _span(value)
    return length if side == "FOLLOWING" else -length


def _rows(start: exp.Expr) -> int:
    if not isinstance(start, exp.Literal) or not start.name.isdigit():
        raise SqlError("ROWS takes a whole number of rows", at=start)
    if int(start.name) > MOST_ROWS:
        raise SqlError(f"ROWS takes at most {MOST_ROWS} rows", at=start)
    return int(start.name)


def _span(start: exp.Expr) -> int:
    kind, value = interval_value(start)
    if kind.months:
        raise SqlError("RANGE takes a fixed length of time", hint="write it in days or less", at=start)
    if value < 0:
        raise SqlError("RANGE takes a length of time that is not negative", at=start)
    return value
