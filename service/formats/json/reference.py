"""What a JSON record means, value by value: the reference that the fast way is measured against.

The rules are those of Flink's JSON format (its JsonParser path): numbers are taken from strings too, a STRING takes any
value as its JSON text, the last of a repeated name counts, names are case-sensitive. On purpose it is stricter where
Flink alters a value silently: 3.7 is not an INT, "yes" is not a BOOLEAN, a DECIMAL that overflows is no NULL. It is
laxer where DuckDB is, if to tell would take a look at every record: "5.0" is an INT, "1_0" and "+-5" are numbers, and
NaN may stand where it is not read.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, InvalidOperation
from decimal import Decimal as Number
from typing import Any, assert_never

from service.formats.json.options import JsonOptions
from service.plan.types import (
    Array,
    Binary,
    DataType,
    Decimal,
    Interval,
    Map,
    Row,
    Simple,
    Text,
    Time,
    Timestamp,
    TimestampLtz,
    flink,
)

BAD_JSON = "bad-json"
WRONG_TYPE = "wrong-type"
BAD_VALUE = "bad-value"
MISSING_FIELD = "missing-field"

_RANGES = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}
_WIDE = Context(prec=10_000, rounding=ROUND_HALF_UP)
_EXACT = 2**53
"""Whole numbers below are all different as DOUBLE."""
_BLANK = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's `trim` takes off a text."""
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_FLOAT_TEXT = re.compile(r"[0-9eE._+-]+\Z")
_DATE_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_CLOCK = r"([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{0,9}))?"
_CLOCK_TEXT = re.compile(_CLOCK + r"\Z")
_MOMENT_TEXT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T])" + _CLOCK + r"(Z?)\Z")
_SHORT_MOMENT_TEXT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(T)([0-9]{2}:[0-9]{2})()(Z?)\Z")
_BASE64_TEXT = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")
_NO_NUMBER = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?i:nan|inf(?:inity)?)\b', re.DOTALL)
"""A string of JSON text, or one of the words for no number, as DuckDB reads them."""
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}

MISSING = object()
"""Stands for a name that a record does not have."""


class Unreadable(Exception):
    """A value or record that cannot be read: a word for the metrics and a sentence for a person."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class JsonLiteral(str):
    """A JSON number, as its own text."""

    __slots__ = ()


def parse(text: str) -> Any:
    """Return the JSON value of a record; numbers stay text (Literal), the last of a repeated name counts."""
    try:
        value = _decoded(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        return value
    except UnicodeEncodeError:
        raise Unreadable(BAD_JSON, "half of a surrogate pair stands alone in a string") from None
    except RecursionError:
        raise Unreadable(BAD_JSON, "the value is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(BAD_JSON, f"not JSON: {error}") from None


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except ValueError:
        # Python knows fewer spellings of NaN and Infinity than DuckDB.
        spelled = _NO_NUMBER.sub(lambda found: found[1] or "NaN", text)
        if spelled == text:
            raise
        return _DECODER.decode(spelled)


class Constant:
    """NaN or an infinity, which JSON does not have: tolerated where it is not read, as DuckDB does."""

    def __init__(self, name: str) -> None:
        self.refusal = Unreadable(BAD_JSON, f"not JSON: {name} is not a number")


# strict=False lets control characters stand in strings, as Flink does.
_DECODER = json.JSONDecoder(parse_float=JsonLiteral, parse_int=JsonLiteral, parse_constant=Constant, strict=False)


def reference_record(text: str, names: tuple[str, ...], types: tuple[DataType, ...], options: JsonOptions) -> list[Any]:
    """Return the wanted fields of a record. Raises Unreadable; with `ignore_errors` a field that is wrong is None
    instead."""
    record = parse(text)
    if not isinstance(record, dict):
        raise Unreadable(BAD_JSON, f"a record is a JSON object, but this is {_kind(record)}")
    return [_field(record, name, type_, options, name) for name, type_ in zip(names, types, strict=True)]


def _field(record: Mapping[str, Any], name: str, type_: DataType, options: JsonOptions, place: str) -> Any:
    value = record.get(name, MISSING)
    if value is MISSING:
        if options.fail_on_missing:
            raise Unreadable(MISSING_FIELD, f'field "{place}" is missing')
        return None
    return _read(value, type_, options, place)


def _read(value: Any, type_: DataType, options: JsonOptions, place: str) -> Any:
    if value is None:
        return None
    try:
        return reference(value, type_, options, place)
    except Unreadable:
        if options.ignore_errors:
            return None
        raise


def reference(value: Any, type_: DataType, options: JsonOptions, place: str) -> Any:
    """Return a JSON value (not null, numbers as Literal) as the Python value of `type_`."""
    if isinstance(value, Constant):
        raise value.refusal
    match type_:
        case Simple("STRING") | Text():
            return value if isinstance(value, str) else to_text(value)
        case Array(element):
            if not isinstance(value, list):
                raise _wrong(value, type_, place)
            return [_read(item, element, options, f"{place}[{i}]") for i, item in enumerate(value)]
        case Map(_, inner):
            if not isinstance(value, dict):
                raise _wrong(value, type_, place)
            return [(key, _read(item, inner, options, f"{place}.{key}")) for key, item in value.items()]
        case Row(names, types):
            if not isinstance(value, dict):
                raise _wrong(value, type_, place)
            fields = zip(names, types, strict=True)
            return tuple(_field(value, name, inner, options, f"{place}.{name}") for name, inner in fields)
        case Simple("NULL"):
            return None
        case Simple("BOOLEAN"):
            return _boolean(value, type_, place)
        case Simple() | Text() | Binary() | Decimal() | Time() | Timestamp() | TimestampLtz():
            if not isinstance(value, str):
                raise _wrong(value, type_, place)
            return _scalar(value, type_, options, place)
        case Interval():
            raise _wrong(value, type_, place)
        case _:
            assert_never(type_)


def _scalar(text: str, type_: DataType, options: JsonOptions, place: str) -> Any:
    """A number or a string as a type that has one text."""
    match type_:
        case Simple("TINYINT" | "SMALLINT" | "INT" | "BIGINT" as name):
            return _integer(text, name, type_, place)
        case Simple("FLOAT" | "DOUBLE"):
            return _float(text, type_, place)
        case Decimal(precision, scale):
            return _decimal(text, precision, scale, type_, place)
        case Simple("BYTES") | Binary():
            return _bytes(text, type_, place)
        case Simple("DATE"):
            return _date(text, type_, place)
        case Time(precision):
            return _time(text, precision, type_, place)
        case Timestamp(precision):
            return _moment(text, precision, "", type_, options, place)
        case TimestampLtz(precision):
            return _moment(text, precision, "Z", type_, options, place)
        case _:
            raise _wrong(text, type_, place)


def to_text(value: Any) -> str:
    """Return the JSON text of a value without spaces; numbers as they were written."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case JsonLiteral():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Constant():
            raise value.refusal
        case list():
            return "[" + ",".join(map(to_text, value)) + "]"
        case _:
            return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{to_text(v)}" for k, v in value.items()) + "}"


def _boolean(value: Any, type_: DataType, place: str) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip(_BLANK).lower() if isinstance(value, str) else ""
    if text not in ("true", "false"):
        raise _wrong(value, type_, place)
    return text == "true"


def _integer(text: str, name: str, type_: DataType, place: str) -> int:
    plain = text.strip(_BLANK)
    value = int(plain) if _INTEGER_TEXT.match(plain) and len(plain) < 4000 else _whole(text, name, type_, place)
    if not -_RANGES[name] <= value < _RANGES[name]:
        raise Unreadable(BAD_VALUE, f'column "{place}": {_short(text)} does not fit in {name}')
    return value


def _whole(text: str, name: str, type_: DataType, place: str) -> int:
    """A number with a point or an exponent, that is whole as a DOUBLE."""
    double = _float(text, type_, place)
    if text.strip(_BLANK) in _NON_FINITE:
        raise _wrong(text, type_, place)
    number = Number(double) if abs(double) < _EXACT else _number(_one_sign(text), type_, place)
    if number.adjusted() > 40:
        raise Unreadable(BAD_VALUE, f'column "{place}": {_short(text)} does not fit in {name}')
    if number != number.to_integral_value():
        raise Unreadable(WRONG_TYPE, f'column "{place}" is {name}, but {_short(text)} has a fraction')
    return int(number)


def _float(text: str, type_: DataType, place: str) -> float:
    plain = text.strip(_BLANK)
    if plain in _NON_FINITE and not isinstance(text, JsonLiteral):
        return _NON_FINITE[plain]
    try:
        # Words such as "nan" are no numbers; digits with underscores between them are, since DuckDB reads them.
        if _FLOAT_TEXT.match(plain):
            return float(_one_sign(plain))
    except ValueError:
        pass
    raise _wrong(text, type_, place)


def _one_sign(text: str) -> str:
    """A number without what DuckDB passes over: blanks around it, a plus before a minus."""
    plain = text.strip(_BLANK)
    return plain[1:] if plain.startswith("+-") else plain


def _decimal(text: str, precision: int, scale: int, type_: DataType, place: str) -> Number:
    plain = text.strip(_BLANK)
    if not _NUMBER_TEXT.match(plain):
        raise _wrong(text, type_, place)
    number = _number(plain, type_, place)
    if number and number.adjusted() >= precision - scale + 1:
        raise Unreadable(BAD_VALUE, f'column "{place}": {_short(text)} does not fit in {flink(type_)}')
    value = number.quantize(Number(1).scaleb(-scale), context=_WIDE)
    if value and value.adjusted() >= precision - scale:
        raise Unreadable(BAD_VALUE, f'column "{place}": {_short(text)} does not fit in {flink(type_)}')
    return value


def _number(text: str, type_: DataType, place: str) -> Number:
    try:
        return Number(text)
    except InvalidOperation:
        raise Unreadable(BAD_VALUE, f'column "{place}": {_short(text)} does not fit in {flink(type_)}') from None


def _bytes(text: str, type_: DataType, place: str) -> bytes:
    if isinstance(text, JsonLiteral) or not _BASE64_TEXT.match(text):
        raise _wrong(text, type_, place, "base64 text")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _wrong(text, type_, place, "base64 text") from None


def _date(text: str, type_: DataType, place: str) -> date:
    try:
        if _DATE_TEXT.match(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise _wrong(text, type_, place, "a text such as 2020-01-31")


def _time(text: str, precision: int, type_: DataType, place: str) -> time:
    match = _CLOCK_TEXT.match(text)
    try:
        if match:
            return time.fromisoformat(match[1]).replace(microsecond=_fraction(match[2], precision))
    except ValueError:
        pass
    raise _wrong(text, type_, place, "a text such as 12:30:00")


def _moment(text: str, precision: int, zone: str, type_: DataType, options: JsonOptions, place: str) -> datetime:
    separator = "T" if options.standard == "ISO-8601" else " "
    match = _MOMENT_TEXT.match(text) or _SHORT_MOMENT_TEXT.match(text)
    try:
        if match and match[2] == separator and match[5] == zone:
            whole = datetime.fromisoformat(f"{match[1]} {match[3]}")
            return whole + timedelta(microseconds=_fraction(match[4], precision))
    except ValueError:
        pass
    raise _wrong(text, type_, place, f"a text such as 2020-01-31{separator}12:30:00.123{zone}")


def _fraction(digits: str | None, precision: int) -> int:
    kept = (digits or "")[: min(precision, 6)]
    return int(kept.ljust(6, "0"))


def _wrong(value: Any, type_: DataType, place: str, wanted: str = "") -> Unreadable:
    what = _short(str(value)) if isinstance(value, JsonLiteral) else _kind(value)
    instead = f", not {wanted}" if wanted else ""
    return Unreadable(WRONG_TYPE, f'column "{place}" is {flink(type_)}, but the record has {what}{instead}')


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case JsonLiteral():
            return f"the number {_short(value)}"
        case str():
            return f'the text "{_short(value)}"'
        case list():
            return "an array"
        case _:
            return "an object"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
