"""URLs and UTF-8: text in other forms, and bytes that may be no text."""

from __future__ import annotations

from service.plan.expressions import Call, Expression
from service.plan.types import BOOLEAN, STRING
from service.sql.errors import SqlError
from service.sql.expressions.context import Context
from service.sql.functions.signature import Arguments, Table, built, constant_integer, plain

# Java's URLEncoder keeps * and writes ~; its decoder does not take a % without two hexadecimal digits.
_URL_ENCODE = "replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')"
_URL_DECODE = (
    "CASE WHEN regexp_full_match({0}, '(?s)(?:[^%]|%[0-9A-Fa-f]{{2}})*') THEN url_decode(replace({0}, '+', '%20')) END"
)

_DEEPEST = 10
"""How often URL_DECODE_RECURSIVE decodes, unless it says."""


def _url_decoded(name: str, arguments: Arguments, context: Context) -> Expression:
    """URL_DECODE_RECURSIVE(text[, times]): decoded as often as it can be; NULL if it cannot be once."""
    times = _DEEPEST if len(arguments) == 1 else constant_integer(arguments[1])
    if times is None or times < 1:
        raise SqlError(f"the second argument of {name} must be a constant number from 1 on")
    once = _URL_DECODE.replace("{0}", "a")
    # Whatever is decoded further is shorter by two characters, so a text is done before its own length.
    steps = f"list_resize(CAST([] AS VARCHAR[]), least({times}, length({{0}}) // 2 + 1), '')"
    more = f"list_reduce([{{0}}] || {steps}, lambda a, b: coalesce({once}, a))"
    return Call(
        name, arguments[:1], STRING, f"CASE WHEN ({_URL_DECODE}) IS NOT NULL THEN {more} END", constants=(times,)
    )


# One character of UTF-8, as the hexadecimal digits of its bytes; and what Java takes for one mistake.
_CHARACTER = (
    "[0-7].|(?:C[2-9A-F]|D.)[89AB].|E0[AB].[89AB].|E[1-9A-CEF](?:[89AB].){{2}}|ED[89].[89AB]."
    "|F0[9AB].(?:[89AB].){{2}}|F[1-3](?:[89AB].){{3}}|F48.(?:[89AB].){{2}}"
)
_MISTAKE = "ED[AB].[89AB].|E0[AB].|E[1-9A-F][89AB].|F0[9AB].(?:[89AB].)?|F[1-3][89AB].(?:[89AB].)?|F48.(?:[89AB].)?|.."
_UTF8 = "TRY(decode({0}))"
_REPAIRED = (
    f"decode(unhex(array_to_string(list_transform(regexp_extract_all(hex({{0}}), '{_CHARACTER}|{_MISTAKE}'),"
    f" lambda b: CASE WHEN regexp_full_match(b, '{_CHARACTER}') THEN b ELSE 'EFBFBD' END), '')))"
)

ENCODINGS: Table = {
    "URL_ENCODE": (plain("STRING", STRING, _URL_ENCODE),),
    "URL_DECODE": (plain("STRING", STRING, _URL_DECODE),),
    "URL_DECODE_RECURSIVE": (built("STRING", _url_decoded), built("STRING, INTEGER", _url_decoded)),
    "IS_VALID_UTF8": (plain("BYTES", BOOLEAN, f"CASE WHEN {{0}} IS NOT NULL THEN {_UTF8} IS NOT NULL END"),),
    "MAKE_VALID_UTF8": (plain("BYTES", STRING, f"coalesce({_UTF8}, {_REPAIRED})"),),
}
