"""Casts to DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ."""

from __future__ import annotations

from service.plan import types
from service.plan.types import DataType, Time, Timestamp, TimestampLtz
from service.sql.expressions.casts_text import matched
from service.sql.expressions.type_rules import is_text
from service.sql.expressions.zones import instant, wall_clock

# What Flink reads: digits and separators only, a part of one digit where it needs no more, no zone.
_DATE = r"^\s*([0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2})(?: .*)?\s*$"
_MOMENT = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?: [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]{0,9})?)?$"
_TIME = r"^\s*[0-9]{1,2}(?::[0-9]{1,2}){0,2}(?:\.[0-9]*)?\s*$"

_ON_A_DAY = "(DATE '1970-01-01' + {0})"


def to_time(source: DataType, to: DataType, zone: str) -> str | None:
    """Return DuckDB text that turns {0}, of type `source`, into the temporal type `to`."""
    if is_text(source):
        return _parsed(to, zone)
    match source, to:
        case (types.DATE | Time(), types.DATE):
            return "{0}" if source == to else None
        case (Timestamp(), types.DATE):
            return "CAST({0} AS DATE)"
        case (TimestampLtz(), types.DATE):
            return f"CAST({wall_clock('{0}', zone)} AS DATE)"
        case (Time(p), Time(q)):
            return "{0}" if p <= q else _time_of(truncated(_ON_A_DAY, q))
        case (Timestamp(), Time(q)):
            return _time_of(truncated("{0}", q))
        case (TimestampLtz(), Time(q)):
            return _time_of(truncated(wall_clock("{0}", zone), q))
        case (types.DATE, Timestamp()):
            return "CAST({0} AS TIMESTAMP)"
        case (types.DATE, TimestampLtz()):
            return instant("CAST({0} AS TIMESTAMP)", zone)
        case (Time(), Timestamp()):
            return _ON_A_DAY
        case (Time(), TimestampLtz()):
            return instant(_ON_A_DAY, zone)
        case (Timestamp(p), Timestamp(q)) | (TimestampLtz(p), TimestampLtz(q)):
            return "{0}" if p <= q else truncated("{0}", q)
        case (Timestamp(p), TimestampLtz(q)):
            value = instant("{0}", zone)
            return value if p <= q else truncated(value, q)
        case (TimestampLtz(p), Timestamp(q)):
            value = wall_clock("{0}", zone)
            return value if p <= q else truncated(value, q)
    return None


def _time_of(moment: str) -> str:
    return f"CAST({moment} AS TIME)"


def truncated(value: str, precision: int) -> str:
    """Return a moment without its digits beyond `precision` after the second."""
    match precision:
        case 0:
            return f"date_trunc('second', {value})"
        case 3:
            return f"date_trunc('millisecond', {value})"
        case 6:
            return value
        case _:
            step = 10 ** (6 - precision)
            return f"time_bucket(INTERVAL '{step} microseconds', {value}, TIMESTAMP '1970-01-01 00:00:00')"


def _parsed(to: DataType, zone: str) -> str | None:
    match to:
        case types.DATE:
            return _date_of_text()
        case Time(precision):
            value = f"CAST({matched(_braced(_TIME))} AS TIME)"
            return value if precision == 6 else _time_of(truncated(f"(DATE '1970-01-01' + {value})", precision))
        case Timestamp(precision):
            return truncated(moment_of_text(), precision)
        case TimestampLtz(precision):
            return truncated(instant(moment_of_text(), zone), precision)
    return None


def _date_of_text() -> str:
    """Text as Flink reads a DATE: day and month may be missing, what follows a blank is passed over."""
    year, month = r"^\s*[0-9]{{1,4}}\s*$", r"^\s*[0-9]{{1,4}}-[0-9]{{1,2}}\s*$"
    whole = f"CAST({matched(_braced(_DATE), 1)} AS DATE)"
    return (
        f"CASE WHEN regexp_matches({{0}}, '{year}') THEN CAST(trim({{0}}) || '-01-01' AS DATE)"
        f" WHEN regexp_matches({{0}}, '{month}') THEN CAST(trim({{0}}) || '-01' AS DATE) ELSE {whole} END"
    )


def moment_of_text() -> str:
    """Return text as Flink reads a TIMESTAMP: a date, or a date and a time after one blank."""
    return f"CAST({matched(_braced(_MOMENT))} AS TIMESTAMP)"


def _braced(pattern: str) -> str:
    """A pattern inside a template, which is formatted later."""
    return pattern.replace("{", "{{").replace("}", "}}")
