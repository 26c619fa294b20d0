"""Functions with a unit of time among their arguments: EXTRACT, FLOOR(t TO unit), TIMESTAMPADD, TIMESTAMPDIFF."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from service.plan import types
from service.plan.expressions import Call, Expression
from service.plan.types import BIGINT, DATE, INT, DataType, Time, Timestamp, TimestampLtz, flink
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions.casts import cast
from service.sql.expressions.literals import MILLISECONDS, MONTHS
from service.sql.expressions.type_rules import is_integer, is_moment, is_numeric, is_text
from service.sql.functions.mathematics import to_whole
from service.sql.functions.signature import Form, Special

# A unit -> DuckDB text of its number in the moment {0}.
_PARTS: Mapping[str, str] = {
    "MILLENNIUM": "((year({0}) + 999) // 1000)",
    "CENTURY": "((year({0}) + 99) // 100)",
    "DECADE": "(year({0}) // 10)",
    "YEAR": "year({0})",
    "ISOYEAR": "isoyear({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "week({0})",
    "DAY": "day({0})",
    "DOY": "dayofyear({0})",
    "DOW": "(dayofweek({0}) + 1)",
    "ISODOW": "isodow({0})",
    "HOUR": "hour({0})",
    "MINUTE": "minute({0})",
    "SECOND": "second({0})",
    "MILLISECOND": "(millisecond({0}) % 1000)",
    "EPOCH": "CAST(floor(epoch({0})) AS BIGINT)",
}
_OF_A_TIME = ("HOUR", "MINUTE", "SECOND", "MILLISECOND")


def unit_of(form: Form, node: exp.Expr, known: Mapping[str, object]) -> str:
    """Return the unit that an argument names: SECOND, or SQL_TSI_SECOND as in JDBC. Raises SqlError for one that is not
    `known`."""
    name = node.name.upper().removeprefix("SQL_TSI_")
    if name not in known and name.removesuffix("S") in known:
        name = name.removesuffix("S")
    if name not in known:
        raise SqlError(
            f'"{node.name}" is no unit of {form.name}',
            detail=f"the units are {', '.join(known)}",
            hint=did_you_mean(name, known),
            at=node,
        )
    return name


def _counted(form: Form, count: int) -> None:
    if len(form.arguments) != count:
        raise SqlError(f"{form.name} takes {count} arguments, not {len(form.arguments)}")


def _wall(value: Expression, form: Form) -> Expression:
    """A moment as a wall-clock time of the session's zone; dates and times stay as they are."""
    if is_text(value.type):
        value = cast(value, Timestamp(3), zone=form.context.zone)
    if isinstance(value.type, TimestampLtz):
        return cast(value, Timestamp(value.type.precision), zone=form.context.zone)
    if not (value.type == DATE or isinstance(value.type, Time | Timestamp)):
        raise SqlError(f"{form.name} takes a date or a time, not {flink(value.type)}", hint=_time_hint(value.type))
    return value


def _time_hint(kind: DataType) -> str:
    return "write TO_TIMESTAMP_LTZ(number, 3) for milliseconds since 1970" if is_integer(kind) else ""


def _part(unit: str, value: Expression) -> Call:
    if isinstance(value.type, Time) and unit not in _OF_A_TIME:
        raise SqlError(f"a TIME has no {unit}")
    if value.type == DATE and unit in _OF_A_TIME:
        return Call("EXTRACT", (value,), BIGINT, "CASE WHEN {0} IS NOT NULL THEN CAST(0 AS BIGINT) END")
    return Call(f"EXTRACT({unit})", (value,), BIGINT, f"CAST({_PARTS[unit]} AS BIGINT)")


def extract(form: Form) -> Expression:
    """Return EXTRACT(unit FROM time), as BIGINT."""
    _counted(form, 2)
    return _part(unit_of(form, form.arguments[0], _PARTS), _wall(form.compile(form.arguments[1]), form))


def _short(unit: str) -> Special:
    """YEAR(time) and its kin."""

    def run(form: Form) -> Expression:
        _counted(form, 1)
        return _part(unit, _wall(form.compile(form.arguments[0]), form))

    return run


def floor(form: Form) -> Expression:
    """Return FLOOR or CEIL of a number, or of a time to a unit. Raises SqlError for other types."""
    function = "FLOOR" if form.name == "FLOOR" else "CEIL"
    if len(form.arguments) == 1:
        value = form.compile(form.arguments[0])
        if not is_numeric(value.type) and value.type != types.NULL:
            raise SqlError(
                f"{form.name} takes a number, not {flink(value.type)}", hint=f"write {form.name}(time TO DAY)"
            )
        return to_whole(function, value)
    _counted(form, 2)
    unit = unit_of(form, form.arguments[1], _FLOORS)
    value = form.compile(form.arguments[0])
    wall = _wall(value, form)
    template = _floor(unit, wall.type) if function == "FLOOR" else _ceil(unit, wall.type)
    rounded = Call(f"{function} TO {unit}", (wall,), wall.type, template)
    return cast(rounded, value.type, zone=form.context.zone) if isinstance(value.type, TimestampLtz) else rounded


_FLOORS: Mapping[str, str] = {
    **{u: u.lower() for u in ("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "DAY")},
    **{u: u.lower() for u in ("HOUR", "MINUTE", "SECOND", "MILLISECOND")},
    "WEEK": "",
}
_STEPS = {"DECADE": "10 years", "CENTURY": "100 years", "MILLENNIUM": "1000 years", "QUARTER": "3 months"}


def _floor(unit: str, type_: types.DataType) -> str:
    moment = "(DATE '1970-01-01' + {0})" if isinstance(type_, Time) else "{0}"
    if unit == "WEEK":
        # Flink's weeks start on Sunday here.
        found = "(date_trunc('day', {0}) - to_days(CAST(dayofweek({0}) AS INTEGER)))"
    elif unit in ("CENTURY", "MILLENNIUM"):
        # The first year of a century is 2001, where DuckDB takes 2000.
        size = 100 if unit == "CENTURY" else 1000
        found = f"make_date((year({{0}}) - 1) // {size} * {size} + 1, 1, 1)"
    else:
        found = f"date_trunc('{unit.lower()}', {moment})"
    return f"CAST({found} AS {types.duckdb(type_)})"


def _ceil(unit: str, type_: types.DataType) -> str:
    below = _floor(unit, type_)
    step = f"INTERVAL '{_STEPS.get(unit, f'1 {unit.lower()}')}'"
    return f"CASE WHEN {below} = {{0}} THEN {{0}} ELSE CAST({below} + {step} AS {types.duckdb(type_)}) END"


_UNITS: Mapping[str, int] = {**MILLISECONDS, **MONTHS}


def timestamp_add(form: Form) -> Expression:
    """Return TIMESTAMPADD(unit, number, time). A DATE becomes a TIMESTAMP(3) with units shorter than a day. Raises
    SqlError for a number that is not whole, or what is no time."""
    _counted(form, 3)
    unit = unit_of(form, form.arguments[0], _UNITS)
    number, time = form.compile(form.arguments[1]), form.compile(form.arguments[2])
    if not is_integer(number.type) and number.type != types.NULL:
        raise SqlError(f"TIMESTAMPADD adds a whole number, not {flink(number.type)}")
    if is_text(time.type):
        time = cast(time, Timestamp(3), zone=form.context.zone)
    if unit in MONTHS:
        step = f"to_months(CAST({{0}} * {MONTHS[unit]} AS INTEGER))"
    else:
        step = f"to_milliseconds(CAST({{0}} AS BIGINT) * {MILLISECONDS[unit]})"
    if time.type == DATE and unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        return Call("TIMESTAMPADD", (number, time), Timestamp(3), f"({{1}} + {step})", constants=(unit,))
    if time.type != DATE and not is_moment(time.type):
        raise SqlError(f"TIMESTAMPADD takes a date or a time, not {flink(time.type)}")
    result = time.type
    if isinstance(result, Timestamp | TimestampLtz) and result.precision < 3:
        result = type(result)(3)
    template = f"CAST({{1}} + {step} AS {types.duckdb(result)})"
    return Call("TIMESTAMPADD", (number, time), result, template, constants=(unit,))


# Months between the days; one less where the days fit and the second time is earlier in its day, as Flink has it also
# where the second time is the earlier one.
_DAYS_BETWEEN = (
    "CASE WHEN {0} <= {1} THEN date_sub('month', CAST({0} AS DATE), CAST({1} AS DATE))"
    " ELSE -date_sub('month', CAST({1} AS DATE), CAST({0} AS DATE)) END"
)
_EARLIER = (
    "CAST(CAST({0} AS DATE) + to_months(CAST(m AS INTEGER)) AS DATE) = CAST({1} AS DATE)"
    " AND CAST({1} AS TIME) < CAST({0} AS TIME)"
)
_MONTHS_BETWEEN = f"list_transform([{_DAYS_BETWEEN}], lambda m: m - CASE WHEN {_EARLIER} THEN 1 ELSE 0 END)[1]"


def timestamp_diff(form: Form) -> Expression:
    """Return TIMESTAMPDIFF(unit, from, to): whole units between, cut off towards zero; for months see `_DAYS_BETWEEN`.
    Raises SqlError for a TIMESTAMP beside a TIMESTAMP_LTZ."""
    _counted(form, 3)
    unit = unit_of(form, form.arguments[0], _UNITS)
    start, end = (form.compile(a) for a in form.arguments[1:])
    if isinstance(start.type, TimestampLtz) != isinstance(end.type, TimestampLtz):
        raise SqlError("TIMESTAMPDIFF of a TIMESTAMP and a TIMESTAMP_LTZ is not defined", hint="use CAST")
    start, end = (cast(_wall(v, form), Timestamp(3)) for v in (start, end))
    if unit in MONTHS:
        template = f"CAST({_MONTHS_BETWEEN} // {MONTHS[unit]} AS INTEGER)"
    else:
        millis = "(epoch_ms({1}) - epoch_ms({0}))"
        template = f"CAST({millis} // {MILLISECONDS[unit]} AS INTEGER)"
    return Call(f"TIMESTAMPDIFF({unit})", (start, end), INT, template)


_SHORT = {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
}

TIME_FORMS: Mapping[str, Special] = {
    "EXTRACT": extract,
    "FLOOR": floor,
    "CEIL": floor,
    "CEILING": floor,
    "TIMESTAMPADD": timestamp_add,
    "TIMESTAMPDIFF": timestamp_diff,
    **{name: _short(unit) for name, unit in _SHORT.items()},
}
