"""Expressions that never fall while their only column rises, so that their maximum is at the column's maximum."""

from __future__ import annotations

from service.plan.expressions import Call, Column, Expression, Literal
from service.plan.types import BIGINT, INT, SMALLINT, TINYINT, DataType, Interval, Timestamp, TimestampLtz

_INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)


def rises_with(expression: Expression) -> int | None:
    """Return the index of the column that `expression` rises with (or stays), wherever it has a value; None if none is
    known.

    Known are what watermarks are made of: a time, a time moved by a constant interval, TO_TIMESTAMP_LTZ of a number. A
    time moved by months is not among them: a month before the 30th of March, 23:00, is later than a month before the
    31st, 01:00, since both days become the last of February.
    """
    match expression:
        case Column(index, type_) if type_ in _INTEGERS or _is_moment(type_):
            return index
        case Call("+" | "-", (moment, Literal(type=Interval(months=False)))) if _is_moment(moment.type):
            return rises_with(moment)
        case Call("TO_TIMESTAMP_LTZ", (number,)) if number.type in _INTEGERS:
            return rises_with(number)
        case _:
            return None


def _is_moment(type_: DataType) -> bool:
    return isinstance(type_, Timestamp | TimestampLtz)
