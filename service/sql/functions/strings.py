"""Functions of text. A character is a Unicode code point; positions count from one."""

from __future__ import annotations

from service.plan import types
from service.plan.expressions import Call, Column, Expression
from service.plan.types import BOOLEAN, BYTES, INT, STRING, Array, DataType, Text
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import is_text
from service.sql.functions.printf import printf
from service.sql.functions.signature import (
    Arguments,
    Form,
    Table,
    built,
    constant_integer,
    constant_text,
    plain,
)
from service.sql.functions.urls import url_part


def _joined(name: str, arguments: Arguments, context: Context) -> Expression:
    """CONCAT and ||: NULL if any part is."""
    parts = tuple(cast(a, STRING, implicit=True, zone=context.zone) for a in arguments)
    texts = [a.type for a in arguments if isinstance(a.type, Text)]
    result: DataType = STRING
    if name == "||" and len(texts) == len(arguments):
        result = Text(sum(t.length for t in texts), all(t.fixed for t in texts))
    return Call(name, parts, result, "(" + " || ".join(f"{{{i}}}" for i in range(len(parts))) + ")")


def _joined_with(name: str, arguments: Arguments, context: Context) -> Expression:
    """CONCAT_WS passes over NULL parts; NULL only if the separator is."""
    if len(arguments) == 1:
        return Call(name, arguments, STRING, "CASE WHEN {0} IS NOT NULL THEN '' END")
    places = ", ".join(f"{{{i}}}" for i in range(len(arguments)))
    return Call(name, arguments, STRING, f"concat_ws({places})")


def _substring(name: str, arguments: Arguments, context: Context) -> Expression:
    """From a position, or from the end if it is negative; position 0 is position 1; a negative length gives NULL."""
    start = constant_integer(arguments[1])
    length = constant_integer(arguments[2]) if len(arguments) > 2 else 0
    if start is not None and start > 0 and length is not None and length >= 0:
        return Call(name, arguments, STRING, "substr({0}, {1}, {2})" if len(arguments) > 2 else "substr({0}, {1})")
    first = "CASE WHEN {1} = 0 THEN 1 ELSE {1} END"
    cut = f"substr({{0}}, {first}, {{2}})" if len(arguments) > 2 else f"substr({{0}}, {first})"
    outside = "WHEN {1} < 0 AND -{1} > length({0}) THEN ''"
    negative = "WHEN {2} < 0 THEN NULL " if len(arguments) > 2 else ""
    return Call(name, arguments, STRING, f"CASE {negative}{outside} ELSE {cut} END")


_OVERLAY = (
    "CASE WHEN {{2}} <= 0 OR {{2}} > length({{0}}) THEN {{0}} ELSE left({{0}}, {{2}} - 1) || {{1}} ||"
    " CASE WHEN {{2}} + {length} <= length({{0}}) AND {length} > 0 THEN substr({{0}}, {{2}} + {length}) ELSE '' END END"
)


def _replaced(name: str, arguments: Arguments, context: Context) -> Expression:
    plainly = "replace({0}, {1}, {2})"
    if constant_text(arguments[1]):
        return Call(name, arguments, STRING, plainly)
    # Java finds the empty text between all characters.
    everywhere = r"regexp_replace({0}, '', replace({2}, '\', '\\'), 'g')"
    return Call(name, arguments, STRING, f"CASE WHEN {{1}} = '' THEN {everywhere} ELSE {plainly} END")


_MOST = 64 << 20
"""Bytes of the longest text that is made of repetitions: a count from a record may be any number."""

# What is too long is made far longer, which DuckDB refuses at once: its error() may not stand inside TRY.
_PADDED = (
    "CASE WHEN {{1}} < 0 OR {{2}} = '' THEN NULL"
    f" WHEN CAST({{{{1}}}} AS BIGINT) * 4 > {_MOST} THEN repeat('x', CAST({{{{1}}}} AS BIGINT) * 100000000000)"
    " ELSE {side}pad({{0}}, {{1}}, {{2}}) END"
)

_REPEATED = (
    f"repeat({{0}}, CASE WHEN CAST(strlen({{0}}) AS HUGEINT) * {{1}} > {_MOST}"
    " THEN CAST({1} AS BIGINT) * 100000000000 ELSE {1} END)"
)

_WORDS = r"regexp_extract_all({0}, '[A-Za-z0-9]+|[^A-Za-z0-9]+')"
_INITCAP = (
    f"array_to_string(list_transform({_WORDS}, lambda w: CASE WHEN regexp_matches(w, '^[A-Za-z0-9]')"
    " THEN upper(left(w, 1)) || lower(substr(w, 2)) ELSE w END), '')"
)


# The first byte, which Java counts from -128 to 127.
_ASCII = "CASE WHEN ascii({0}) < 128 THEN ascii({0}) ELSE CAST('0x' || left(hex({0}), 2) AS INTEGER) - 256 END"


def _encoded(name: str, arguments: Arguments, context: Context) -> Expression:
    charset = constant_text(arguments[1])
    if charset is None or charset.upper() not in ("UTF-8", "UTF8"):
        raise SqlError(f"{name} knows the character set 'UTF-8' only", hint=f"write {name}(..., 'UTF-8')")
    if name == "ENCODE":
        return Call(name, arguments, BYTES, "encode({0})")
    return Call(name, arguments, STRING, "decode({0})")


def trim(form: Form) -> Expression:
    """Return TRIM(x) or TRIM(BOTH|LEADING|TRAILING y FROM x): y is a set of characters, a blank if it is left out.
    Raises SqlError for anything but text."""
    side = form.keywords["SIDE"].name if "SIDE" in form.keywords else "BOTH"
    arguments = tuple(form.compile(a) for a in form.arguments)
    if len(arguments) > 2 or not all(_is_text(a) for a in arguments):
        raise SqlError("TRIM takes text", hint="write TRIM(BOTH ' ' FROM text)")
    function = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
    characters = "{1}" if len(arguments) == 2 else "' '"
    return Call("TRIM", arguments, STRING, f"{function}({{0}}, {characters})", constants=(side,))


def _is_text(argument: Expression) -> bool:
    return argument.type == types.NULL or is_text(argument.type)


def _split(name: str, arguments: Arguments, context: Context) -> Expression:
    """SPLIT_INDEX counts from zero: NULL outside, and for the empty text. Without a separator blanks part."""
    parts = "string_split({0}, {1})"
    if arguments[1].type == INT:
        parts = "string_split({0}, chr({1}))"
    elif not constant_text(arguments[1]):
        parts = f"CASE WHEN {{1}} = '' THEN string_split_regex({{0}}, '\\s') ELSE {parts} END"
    template = f"CASE WHEN {{0}} = '' OR {{2}} < 0 THEN NULL ELSE ({parts})[{{2}} + 1] END"
    return Call(name, arguments, STRING, template, faster=_split_once(name, arguments))


def _split_once(name: str, arguments: Arguments) -> Expression | None:
    """SPLIT_INDEX as an element of the parts of a text, which several calls share."""
    place = constant_integer(arguments[2])
    if not constant_text(arguments[1]) or place is None or place < 0:
        return None
    given = (Column(0, STRING), Column(1, STRING))
    parts = Call("SPLIT", given, Array(STRING), "string_split(nullif({0}, ''), {1})")
    return Call(name, (parts, Column(2, INT)), STRING, "{0}[{1} + 1]")


# A position before the first is the first; the empty text is found there, wherever the search starts.
_TAIL = "substr({1}, greatest({2}, 1))"
_LOCATE_FROM = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {0} = '' THEN 1"
    f" WHEN instr({_TAIL}, {{0}}) > 0 THEN CAST(instr({_TAIL}, {{0}}) + greatest({{2}}, 1) - 1 AS INTEGER) ELSE 0 END"
)


def _sha2(name: str, arguments: Arguments, context: Context) -> Expression:
    if constant_integer(arguments[1]) != 256:
        raise SqlError("SHA2 is supported with 256 bits only", hint="write SHA2(text, 256) or SHA256(text)")
    return Call(name, arguments[:1], Text(128), "sha256({0})")


def _element(name: str, arguments: Arguments, context: Context) -> Expression:
    """ELT(n, a, b, ...): the n-th text, or NULL."""
    whens = " ".join(f"WHEN {i} THEN {{{i}}}" for i in range(1, len(arguments)))
    return Call(name, arguments, STRING, f"CASE {{0}} {whens} END")


_LETTERS = r"coalesce(regexp_full_match({0}, '\p{{L}}+'), false)"
_DIGITS = r"coalesce(regexp_full_match({0}, '\p{{Nd}}+'), false)"
_NUMBER = r"coalesce(regexp_full_match({0}, '[+-]?[0-9]+(\.[0-9]+)?'), false)"
_SPLIT = "CASE WHEN {0} = '' AND {1} IS NOT NULL THEN CAST([] AS VARCHAR[]) ELSE string_split({0}, {1}) END"

# The last characters may lack their padding.
_FROM_BASE64 = (
    "decode(from_base64({0} || CASE WHEN ends_with({0}, '=') THEN '' ELSE repeat('=', -length({0}) & 3) END))"
)

STRINGS: Table = {
    "||": (built("STRING, STRING", _joined), plain("BYTES, BYTES", BYTES, "({0} || {1})")),
    "CONCAT": (built("STRING, STRING*", _joined),),
    "CONCAT_WS": (built("STRING, STRING*", _joined_with),),
    "CHAR_LENGTH": (plain("STRING", INT, "CAST(length({0}) AS INTEGER)"),),
    "CHARACTER_LENGTH": (plain("STRING", INT, "CAST(length({0}) AS INTEGER)"),),
    "UPPER": (plain("STRING", STRING, "upper({0})"),),
    "LOWER": (plain("STRING", STRING, "lower({0})"),),
    "INITCAP": (plain("STRING", STRING, _INITCAP),),
    "SUBSTRING": (built("STRING, INT", _substring), built("STRING, INT, INT", _substring)),
    "SUBSTR": (built("STRING, INT", _substring), built("STRING, INT, INT", _substring)),
    "OVERLAY": (
        plain("STRING, STRING, INT", STRING, _OVERLAY.format(length="length({1})")),
        plain("STRING, STRING, INT, INT", STRING, _OVERLAY.format(length="{3}")),
    ),
    "REPLACE": (built("STRING, STRING, STRING", _replaced),),
    "TRANSLATE": (plain("STRING, STRING, STRING", STRING, "translate({0}, {1}, {2})"),),
    "BTRIM": (plain("STRING", STRING, "trim({0}, ' ')"), plain("STRING, STRING", STRING, "trim({0}, {1})")),
    "LTRIM": (plain("STRING", STRING, "ltrim({0}, ' ')"), plain("STRING, STRING", STRING, "ltrim({0}, {1})")),
    "RTRIM": (plain("STRING", STRING, "rtrim({0}, ' ')"), plain("STRING, STRING", STRING, "rtrim({0}, {1})")),
    "LPAD": (plain("STRING, INT, STRING", STRING, _PADDED.format(side="l")),),
    "RPAD": (plain("STRING, INT, STRING", STRING, _PADDED.format(side="r")),),
    "REPEAT": (plain("STRING, INT", STRING, _REPEATED),),
    "REVERSE": (plain("STRING", STRING, "reverse({0})"),),
    "LEFT": (plain("STRING, INT", STRING, "CASE WHEN {1} < 0 THEN '' ELSE left({0}, {1}) END"),),
    "RIGHT": (plain("STRING, INT", STRING, "CASE WHEN {1} < 0 THEN '' ELSE right({0}, {1}) END"),),
    "POSITION": (plain("STRING, STRING", INT, "CAST(instr({1}, {0}) AS INTEGER)"),),
    "INSTR": (plain("STRING, STRING", INT, "CAST(instr({0}, {1}) AS INTEGER)"),),
    "LOCATE": (
        plain("STRING, STRING", INT, "CAST(instr({1}, {0}) AS INTEGER)"),
        plain("STRING, STRING, INT", INT, _LOCATE_FROM),
    ),
    "STARTSWITH": (plain("STRING, STRING", BOOLEAN, "starts_with({0}, {1})"),),
    "ENDSWITH": (plain("STRING, STRING", BOOLEAN, "ends_with({0}, {1})"),),
    "SPLIT_INDEX": (built("STRING, STRING, INT", _split), built("STRING, INT, INT", _split)),
    "SPLIT": (plain("STRING, STRING", Array(STRING), _SPLIT),),
    "IS_ALPHA": (plain("STRING", BOOLEAN, _LETTERS),),
    "IS_DIGIT": (plain("STRING", BOOLEAN, _DIGITS), plain("INTEGER", BOOLEAN, "({0} IS NOT NULL)")),
    "IS_DECIMAL": (plain("STRING", BOOLEAN, _NUMBER), plain("NUMERIC", BOOLEAN, "({0} IS NOT NULL)")),
    "CURRENT_DATABASE": (plain("", STRING, "'default_database'"),),
    "ELT": (built("INT, STRING, STRING*", _element),),
    "ASCII": (plain("STRING", INT, _ASCII),),
    "CHR": (plain("BIGINT", STRING, "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END"),),
    "MD5": (plain("STRING", Text(32, fixed=True), "md5({0})"),),
    "SHA1": (plain("STRING", Text(40, fixed=True), "sha1({0})"),),
    "SHA256": (plain("STRING", Text(64, fixed=True), "sha256({0})"),),
    "SHA2": (built("STRING, INT", _sha2),),
    "TO_BASE64": (plain("STRING", STRING, "to_base64(encode({0}))"),),
    "FROM_BASE64": (plain("STRING", STRING, _FROM_BASE64),),
    "HEX": (plain("BIGINT", STRING, "to_hex({0})"), plain("STRING", STRING, "hex({0})")),
    "UNHEX": (plain("STRING", BYTES, "TRY(unhex({0}))"),),
    "BIN": (plain("BIGINT", STRING, "bin({0})"),),
    "ENCODE": (built("STRING, STRING", _encoded),),
    "DECODE": (built("BYTES, STRING", _encoded),),
    "PARSE_URL": (built("STRING, STRING", url_part), built("STRING, STRING, STRING", url_part)),
    "PRINTF": (built("STRING, ANY*", printf),),
    "UUID": (plain("", Text(36, fixed=True), "CAST(uuid() AS VARCHAR)", deterministic=False),),
}

STRING_FORMS = {"TRIM": trim}
