"""Times from and to text and numbers, and the time of the batch: TO_TIMESTAMP, DATE_FORMAT, CURRENT_TIMESTAMP.

"Now" is the processing time of the batch ($now, in UTC), the same for all its rows and on a replay.
"""

from __future__ import annotations

from service.plan.expressions import Call, Expression
from service.plan.types import BIGINT, BOOLEAN, DATE, STRING, Decimal, Interval, Time, Timestamp, TimestampLtz
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.casts_time import moment_of_text
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import is_approximate, is_text
from service.sql.expressions.zones import checked_zone, instant, later_instant, wall_clock, zone_of_row
from service.sql.functions.arithmetic import shifted
from service.sql.functions.date_patterns import reader, written
from service.sql.functions.logic import unified
from service.sql.functions.signature import Arguments, Table, built, constant_integer, constant_text

_NOW = "CAST($now AS TIMESTAMP)"
_STANDARD = "yyyy-MM-dd HH:mm:ss"


def _instant(name: str, arguments: Arguments, context: Context) -> Expression:
    return Call(name, (), TimestampLtz(3), f"date_trunc('millisecond', {_NOW})")


def _local(name: str, arguments: Arguments, context: Context) -> Expression:
    local = wall_clock(_NOW, context.zone)
    match name:
        case "CURRENT_DATE":
            return Call(name, (), DATE, f"CAST({local} AS DATE)")
        case "LOCALTIMESTAMP":
            return Call(name, (), Timestamp(3), f"date_trunc('millisecond', {local})")
        case _:
            return Call(name, (), Time(0), f"CAST(date_trunc('second', {local}) AS TIME)")


def pattern_of(name: str, argument: Expression) -> str:
    """Return the text of a pattern, which must be known before the first row. Raises SqlError if it is not constant."""
    text = constant_text(argument)
    if text is None:
        raise SqlError(f"the pattern of {name} must be a constant", hint=f"write it out, such as '{_STANDARD}'")
    return text


def _to_ltz(name: str, arguments: Arguments, context: Context) -> Expression:
    """TO_TIMESTAMP_LTZ(number, 0 | 3): seconds or milliseconds of the years 0 to 9999, NULL outside."""
    number = arguments[0]
    precision = constant_integer(arguments[1]) if len(arguments) > 1 else 3
    if precision not in (0, 3):
        given = "this is not a constant" if precision is None else f"this is {precision}"
        raise SqlError("the precision of TO_TIMESTAMP_LTZ is 0 for seconds or 3 for milliseconds", detail=given)
    scale = 1000 if precision == 0 else 1
    if is_approximate(number.type) or isinstance(number.type, Decimal):
        whole = "trunc({0})" if isinstance(number.type, Decimal) and precision == 0 else f"trunc({{0}} * {scale})"
        factor = scale if whole == "trunc({0})" else 1
        milliseconds = f"CAST({whole} AS BIGINT)" + (f" * {factor}" if factor > 1 else "")
    else:
        milliseconds = f"CAST({{0}} AS BIGINT) * {scale}"
    low, high = -62_167_219_200_000 // scale, 253_402_300_799_999 // scale
    # Beside $now the plainest form there is: event time is most often made here.
    template = f"CASE WHEN {{0}} BETWEEN {low} AND {high} THEN make_timestamp({milliseconds} * 1000) END"
    return Call(name, arguments[:1], TimestampLtz(3), template)


def _text_to_ltz(name: str, arguments: Arguments, context: Context) -> Expression:
    """TO_TIMESTAMP_LTZ(text[, pattern[, zone]]): without a zone the text is in UTC."""
    zone = "UTC"
    if len(arguments) == 3:
        text = constant_text(arguments[2])
        if text is None:
            raise SqlError("the zone of TO_TIMESTAMP_LTZ must be a constant")
        zone = checked_zone(text)
    return Call(name, arguments[:1], TimestampLtz(3), instant(_parsed(name, arguments[:2]), zone))


def _parsed(name: str, arguments: Arguments) -> str:
    """Text as a TIMESTAMP by a pattern, or by the standard form; NULL if it does not fit."""
    if len(arguments) == 1:
        return f"date_trunc('millisecond', TRY({moment_of_text()}))"
    by_pattern = reader(pattern_of(name, arguments[1])).moment("{0}")
    # A text that does not fit the pattern is tried in the standard form, as in Flink.
    trimmed = moment_of_text().replace("{0}", "trim({0}, ' ')")
    return f"date_trunc('millisecond', coalesce({by_pattern}, TRY({trimmed})))"


def _to_timestamp(name: str, arguments: Arguments, context: Context) -> Expression:
    return Call(name, arguments[:1], Timestamp(3), _parsed(name, arguments))


def _to_date(name: str, arguments: Arguments, context: Context) -> Expression:
    if len(arguments) == 1:
        return cast(arguments[0], DATE, try_=True)
    moment = reader(pattern_of(name, arguments[1]), lenient=True).moment("{0}")
    return Call(name, arguments[:1], DATE, f"CAST({moment} AS DATE)")


def _moment(argument: Expression, context: Context) -> Expression:
    """What DATE_FORMAT and UNIX_TIMESTAMP write: a wall-clock time of the session's zone."""
    if is_text(argument.type):
        template = reader(_STANDARD, lenient=True).moment("{0}")
        return Call("TO_TIMESTAMP", (argument,), Timestamp(3), template, constants=(_STANDARD, "lenient"))
    return cast(argument, Timestamp(6), zone=context.zone) if argument.type != Timestamp(6) else argument


def _format(name: str, arguments: Arguments, context: Context) -> Expression:
    pattern = pattern_of(name, arguments[1])
    return Call(name, (_moment(arguments[0], context),), STRING, written(pattern))


def _unix(name: str, arguments: Arguments, context: Context) -> Expression:
    """Seconds since 1970 of now, or of a text in the session's zone."""
    if not arguments:
        return Call(name, (), BIGINT, f"CAST(floor(epoch({_NOW})) AS BIGINT)")
    pattern = pattern_of(name, arguments[1]) if len(arguments) > 1 else _STANDARD
    read = reader(pattern, lenient=True)
    moment = read.instant("{0}") if read.offset else later_instant(read.moment("{0}"), context.zone)
    seconds = f"CAST(floor(epoch({moment})) AS BIGINT)"
    return Call(name, arguments[:1], BIGINT, f"CASE WHEN {{0}} IS NOT NULL THEN coalesce({seconds}, {_UNREADABLE}) END")


# What Flink answers for a text that it cannot read: Long.MIN_VALUE.
_UNREADABLE = "CAST('-9223372036854775808' AS BIGINT)"


def _from_unix(name: str, arguments: Arguments, context: Context) -> Expression:
    pattern = pattern_of(name, arguments[1]) if len(arguments) > 1 else _STANDARD
    moment = wall_clock("make_timestamp({0} * 1000000)", context.zone)
    return Call(name, arguments[:1], STRING, written(pattern).replace("{0}", moment))


def _convert_zone(name: str, arguments: Arguments, context: Context) -> Expression:
    """CONVERT_TZ(text, from, to): constant zones are checked; a zone of a row that is none is UTC, as in Java."""
    zones = [constant_text(a) for a in arguments[1:]]
    read = reader(_STANDARD, lenient=True).moment("{0}")
    if None not in zones:
        start, end = (checked_zone(z or "") for z in zones)
        moment = wall_clock(later_instant(read, start), end)
        return Call(name, arguments[:1], STRING, written(_STANDARD).replace("{0}", moment))
    there, here = (zone_of_row(f"{{{i}}}") for i in (1, 2))
    moment = f"timezone({here}, timezone({there}, {read}))"
    template = f"CASE WHEN {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN {written(_STANDARD).replace('{0}', moment)} END"
    return Call(name, arguments, STRING, template)


def _overlaps(name: str, arguments: Arguments, context: Context) -> Expression:
    """(a, b) OVERLAPS (c, d): whether two periods share a time, of which an end is one; an end may be a length."""
    ends = [
        shifted("+", (start, end), context) if isinstance(end.type, Interval) else end
        for start, end in (arguments[:2], arguments[2:])
    ]
    times = unified((arguments[0], ends[0], arguments[2], ends[1]), context, name)
    first, last = ("CASE WHEN {a} < {b} THEN {a} ELSE {b} END", "CASE WHEN {a} < {b} THEN {b} ELSE {a} END")
    one, other = {"a": "{0}", "b": "{1}"}, {"a": "{2}", "b": "{3}"}
    begun, ended = (f"({last.format(**a)} >= {first.format(**b)})" for a, b in ((one, other), (other, one)))
    return Call(name, times, BOOLEAN, f"({begun} AND {ended})")


_NUMBERS = ("INTEGER", "DECIMAL", "APPROXIMATE")

TIMES: Table = {
    **{name: (built("", _instant),) for name in ("CURRENT_TIMESTAMP", "NOW", "CURRENT_ROW_TIMESTAMP", "PROCTIME")},
    **{name: (built("", _local),) for name in ("CURRENT_DATE", "LOCALTIMESTAMP", "LOCALTIME", "CURRENT_TIME")},
    "TO_TIMESTAMP_LTZ": (
        *(built(kind, _to_ltz) for kind in _NUMBERS),
        *(built(f"{kind}, INT", _to_ltz) for kind in _NUMBERS),
        built("STRING", _text_to_ltz),
        built("STRING, STRING", _text_to_ltz),
        built("STRING, STRING, STRING", _text_to_ltz),
    ),
    "TO_TIMESTAMP": (built("STRING", _to_timestamp), built("STRING, STRING", _to_timestamp)),
    "TO_DATE": (built("STRING", _to_date), built("STRING, STRING", _to_date)),
    "DATE_FORMAT": (
        built("MOMENT, STRING", _format),
        built("STRING, STRING", _format),
        built("DATE, STRING", _format),
    ),
    "UNIX_TIMESTAMP": (built("", _unix), built("STRING", _unix), built("STRING, STRING", _unix)),
    "FROM_UNIXTIME": (built("BIGINT", _from_unix), built("BIGINT, STRING", _from_unix)),
    "OVERLAPS": tuple(
        built(f"{kind}, {one}, {kind}, {other}", _overlaps)
        for kind in ("DATE", "TIME", "MOMENT")
        for one in (kind, "INTERVAL")
        for other in (kind, "INTERVAL")
    ),
    "CONVERT_TZ": (built("STRING, STRING, STRING", _convert_zone),),
}
