"""The frame of an OVER window: ROWS or RANGE, from where up to the current row."""

from __future__ import annotations

from sqlglot import exp

from service.plan.nodes import Frame
from service.sql.errors import SqlError
from service.sql.expressions.literals import interval_value

MOST_ROWS = 2**31 - 1
"""The longest frame of rows, all of which are kept."""


def frame_of(spec: exp.WindowSpec | None, function: str) -> Frame:
    """The frame; without one, all rows up to the current one: by time for aggregates, as in the standard."""
    if spec is None:
        return Frame(rows=function in ("ROW_NUMBER", "LAG"), preceding=None)
    rows = str(spec.args["kind"]).upper() == "ROWS"
    start, end = spec.args.get("start"), spec.args.get("end")
    if end is not None and end != "CURRENT ROW":
        raise SqlError(
            "a frame ends at CURRENT ROW", detail="rows that have not come yet cannot be waited for", at=spec
        )
    if start == "CURRENT ROW":
        return Frame(rows, 0)
    if str(spec.args.get("start_side")).upper() != "PRECEDING":
        raise SqlError("a frame starts PRECEDING the current row", at=spec)
    if start == "UNBOUNDED":
        return Frame(rows, None)
    assert isinstance(start, exp.Expr)
    return Frame(rows, _rows(start) if rows else _span(start))


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
