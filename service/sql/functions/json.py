"""JSON_VALUE, JSON_QUERY, JSON_EXISTS and IS JSON: reading JSON that stands in text.

A text that is no JSON, and in strict mode a path that leads nowhere, is an error; in lax mode both are empty. What is
then answered, the clauses ON ERROR and ON EMPTY say; NULL if they are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from sqlglot import exp

from service.plan import types
from service.plan.expressions import Call, Expression
from service.plan.types import BOOLEAN, STRING, Array, DataType, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast, template_of
from service.sql.expressions.type_rules import is_text
from service.sql.functions.json_paths import Path, read_path
from service.sql.functions.json_writing import JSON_ITEM
from service.sql.functions.signature import Form, Special, Table, constant_text, plain, template_text
from service.sql.parse.data_types import data_type

_NULL = exp.var("NULL")


def _words(form: Form, path: Path, *clauses: str) -> tuple[str, ...]:
    """The path and what the clauses say, as constants of the call; an expression of DEFAULT is an argument of it."""
    given = (form.keywords.get(clause, _NULL) for clause in clauses)
    words = (_NULL.name if _is_null(each) else each.name if isinstance(each, exp.Var) else "DEFAULT" for each in given)
    return path.duckdb, path.array or "", "lax" if path.lax else "strict", *words


def _arguments(form: Form) -> tuple[Expression, Path]:
    if len(form.arguments) != 2:
        raise SqlError(
            f"{form.name} takes a text and a path",
            hint=f"write {form.name}(column, '$.field')",
        )
    value, path = (form.compile(a) for a in form.arguments)
    if not is_text(value.type) and value.type != types.NULL:
        raise SqlError(f"{form.name} reads text, not {flink(value.type)}")
    text = constant_text(path)
    if text is None:
        raise SqlError(f"the path of {form.name} must be a constant", hint="write it out, such as '$.field'")
    return cast(value, STRING, implicit=True), read_path(text)


def _found(path: Path) -> str:
    """What the path leads to, as JSON; NULL if it leads nowhere or the text is no JSON."""
    found = f"TRY(json_extract({{0}}, {template_text(path.duckdb)}))"
    if not path.array:
        return found
    array = f"json_type(TRY(json_extract({{0}}, {template_text(path.array)})))"
    return f"CASE WHEN {array} = 'ARRAY' THEN to_json({found}) END"


def _failure(form: Form, type_: DataType) -> str:
    """DuckDB text of type `type_` that fails the row; it reads the row, or it would fail before the first one."""
    reason = template_text(f"{form.name} found no value at the path")
    return f"CAST(CAST(left({{0}}, 0) || {reason} AS INTEGER) AS {types.duckdb(type_)})"


def json_value(form: Form) -> Expression:
    """Return JSON_VALUE: the scalar at the path, as text or as the type of RETURNING. Raises SqlError for a path with
    [*], or a type that RETURNING does not take."""
    value, path = _arguments(form)
    if path.array:
        raise SqlError("the path of JSON_VALUE leads to one value, without [*]")
    returning = form.keywords.get("RETURNING")
    type_: DataType = STRING
    if isinstance(returning, exp.DataType):
        try:
            type_ = data_type(returning)
        except ValueError as error:
            raise SqlError(str(error), at=returning) from None
        if type_ not in (STRING, types.BOOLEAN, types.INT, types.DOUBLE):
            raise SqlError("JSON_VALUE returns STRING, BOOLEAN, INTEGER or DOUBLE", hint="use CAST around it")
    converted = template_of(STRING, type_, False, form.context.zone) or "{0}"
    on_empty, on_error = form.keywords.get("ON EMPTY", _NULL), form.keywords.get("ON ERROR", _NULL)
    if _is_null(on_empty) and _is_null(on_error):
        scalar = f"json_extract_string(TRY(json_value({{0}}, {template_text(path.duckdb)})), '$')"
        return Call(form.name, (value,), type_, converted.replace("{0}", scalar), constants=_words(form, path))
    arguments = [value]
    empty = _behaviour(form, on_empty, type_, arguments)
    missing = empty if path.lax else _behaviour(form, on_error, type_, arguments)
    kind = f"json_type({_found(path)})"
    read = converted.replace("{0}", f"json_extract_string({_found(path)}, '$')")
    template = (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {_found(path)} IS NULL THEN {missing}"
        f" WHEN {kind} = 'NULL' THEN {empty} WHEN {kind} IN ('OBJECT', 'ARRAY') THEN {missing} ELSE {read} END"
    )
    words = _words(form, path, "ON EMPTY", "ON ERROR")
    return Call(form.name, tuple(arguments), type_, template, constants=words)


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name == "NULL")


def _behaviour(form: Form, node: exp.Expr, type_: DataType, arguments: list[Expression]) -> str:
    """DuckDB text of what a clause answers; a DEFAULT becomes one more argument."""
    if _is_null(node):
        return f"CAST(NULL AS {types.duckdb(type_)})"
    if isinstance(node, exp.Var):
        if node.name == "ERROR":
            return _failure(form, type_)
        raise SqlError(f"{form.name} does not know {node.name} as an answer")
    arguments.append(cast(form.compile(node), type_, implicit=True, zone=form.context.zone))
    return f"{{{len(arguments) - 1}}}"


def json_query(form: Form) -> Expression:
    """Return JSON_QUERY: the object or array at the path, as JSON text, whose keys are sorted."""
    value, path = _arguments(form)
    if _returned(form) == Array(STRING):
        return _json_list(form, value, path)
    fixed = {
        "NULL": "CAST(NULL AS VARCHAR)",
        "EMPTY ARRAY": "'[]'",
        "EMPTY OBJECT": "'{{}}'",
        "ERROR": _failure(form, STRING),
    }

    empty, error = _answers(form, fixed)
    found = _found(path)
    kind, text = f"json_type({found})", f"json_normalize({found})"
    wrapper = form.keywords["WRAPPER"].name if "WRAPPER" in form.keywords else "WITHOUT"
    missing = empty if path.lax else error
    match wrapper:
        case "UNCONDITIONAL":
            answer = f"CASE WHEN {kind} = 'NULL' THEN {empty} ELSE '[' || {text} || ']' END"
        case "CONDITIONAL":
            answer = f"CASE {kind} WHEN 'ARRAY' THEN {text} WHEN 'NULL' THEN {empty} ELSE '[' || {text} || ']' END"
        case _:
            answer = (
                f"CASE {kind} WHEN 'OBJECT' THEN {text} WHEN 'ARRAY' THEN {text}"
                f" WHEN 'NULL' THEN {empty} ELSE {missing} END"
            )
    template = f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {found} IS NULL THEN {missing} ELSE {answer} END"
    words = _words(form, path, "ON EMPTY", "ON ERROR")
    return Call(form.name, (value,), STRING, template, constants=(*words, wrapper))


def _answers(form: Form, known: Mapping[str, str], of_type: str = "") -> tuple[str, str]:
    """What JSON_QUERY answers ON EMPTY and ON ERROR, of the answers that are `known` by name; NULL if it does
    not say."""
    names = [form.keywords.get(clause, _NULL).name or "NULL" for clause in ("ON EMPTY", "ON ERROR")]
    for name in names:
        if name not in known:
            raise SqlError(
                f"JSON_QUERY cannot give {name}{of_type}", detail=f"ON EMPTY and ON ERROR take {' or '.join(known)}"
            )
    empty, error = (known[name] for name in names)
    return empty, error


def _returned(form: Form) -> DataType:
    """What RETURNING of JSON_QUERY says: STRING, or ARRAY<STRING>."""
    node = form.keywords.get("RETURNING")
    if not isinstance(node, exp.DataType):
        return STRING
    try:
        type_ = data_type(node)
    except ValueError as error:
        raise SqlError(str(error), at=node) from None
    if type_ not in (STRING, Array(STRING)):
        raise SqlError(f"JSON_QUERY returns STRING or ARRAY<STRING>, not {flink(type_)}", at=node)
    return type_


def _json_list(form: Form, value: Expression, path: Path) -> Expression:
    """JSON_QUERY(... RETURNING ARRAY<STRING>): the elements of an array, each as text; what is no array is an error."""
    type_ = Array(STRING)
    answers = {
        "NULL": f"CAST(NULL AS {types.duckdb(type_)})",
        "EMPTY ARRAY": "CAST([] AS VARCHAR[])",
        "ERROR": _failure(form, type_),
    }

    empty, error = _answers(form, answers, f" of type {flink(type_)}")
    found = _found(path)
    missing = empty if path.lax else error
    element = (
        f"CASE WHEN json_type({JSON_ITEM}) = 'NULL' THEN NULL WHEN json_type({JSON_ITEM}) IN ('OBJECT', 'ARRAY')"
        f" THEN json_normalize({JSON_ITEM}) ELSE json_extract_string({JSON_ITEM}, '$') END"
    )
    elements = f"list_transform(json_extract({found}, '$[*]'), lambda {JSON_ITEM}: {element})"
    single = f"list_transform([{found}], lambda {JSON_ITEM}: {element})"
    wrapper = form.keywords["WRAPPER"].name if "WRAPPER" in form.keywords else "WITHOUT"
    arrays = single if wrapper == "UNCONDITIONAL" else elements
    objects = error if wrapper == "WITHOUT" else single
    others = missing if wrapper == "WITHOUT" else single
    template = (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {found} IS NULL THEN {missing}"
        f" WHEN json_type({found}) = 'NULL' THEN {empty} WHEN json_type({found}) = 'ARRAY' THEN {arrays}"
        f" WHEN json_type({found}) = 'OBJECT' THEN {objects} ELSE {others} END"
    )
    words = _words(form, path, "ON EMPTY", "ON ERROR")
    return Call(form.name, (value,), type_, template, constants=(*words, wrapper))


def json_exists(form: Form) -> Expression:
    """Return JSON_EXISTS: whether the path leads to a value other than null. Raises SqlError for an unknown answer ON
    ERROR."""
    value, path = _arguments(form)
    found = _found(path)
    there = f"json_array_length({found}) > 0" if path.array else f"json_type({found}) <> 'NULL'"
    name = form.keywords["ON ERROR"].name if "ON ERROR" in form.keywords else "FALSE"
    answers = {"TRUE": "TRUE", "FALSE": "FALSE", "UNKNOWN": "CAST(NULL AS BOOLEAN)", "ERROR": _failure(form, BOOLEAN)}
    if name not in answers:
        raise SqlError(f"JSON_EXISTS does not know {name} as an answer")
    missing = "FALSE" if path.lax else answers[name]
    template = f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {found} IS NULL THEN {missing} ELSE {there} END"
    return Call(form.name, (value,), BOOLEAN, template, constants=(*_words(form, path), name))


# DuckDB reads a comma before a closing bracket, NaN and Infinity, which are no JSON; inside texts they may stand.
_LOOSE = template_text(r"(?i),\s*[\]}]|nan|inf")
_TEXTS = template_text(r'"(?:[^"\\]|\\.)*"')
_STRICT = (
    f"json_valid({{0}}) AND NOT (regexp_matches({{0}}, {_LOOSE})"
    f" AND regexp_matches(regexp_replace({{0}}, {_TEXTS}, '\"\"', 'g'), {_LOOSE}))"
)


def _is_json(condition: str) -> str:
    return f"coalesce(CASE WHEN {_STRICT} THEN {condition} END, FALSE)"


_SCALAR = "json_type({0}) NOT IN ('OBJECT', 'ARRAY')"
# As Flink has it: / and whatever is no ASCII are escaped, control characters without a letter of their own are not.
_ESCAPES = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("/", "\\/"),
    ("\b", "\\b"),
    ("\f", "\\f"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
)
_ESCAPED = reduce(lambda text, pair: f"replace({text}, chr({ord(pair[0])}), {template_text(pair[1])})", _ESCAPES, "{0}")
_POINT = f"ord({JSON_ITEM})"
_UNIT = (
    f"CASE WHEN {_POINT} < 128 THEN {JSON_ITEM} WHEN {_POINT} < 65536 THEN printf('\\u%04x', {_POINT})"
    f" ELSE printf('\\u%04x\\u%04x', 55296 + (({_POINT} - 65536) >> 10), 56320 + (({_POINT} - 65536) & 1023)) END"
)
_QUOTED = (
    f"('\"' || CASE WHEN regexp_full_match({_ESCAPED}, '(?s)[\\x00-\\x7f]*') THEN {_ESCAPED}"
    f" ELSE array_to_string(list_transform(string_split({_ESCAPED}, ''), lambda {JSON_ITEM}: {_UNIT}), '') END || '\"')"
)
_UNQUOTED = "CASE WHEN starts_with({0}, '\"') AND json_valid({0}) THEN json_extract_string({0}, '$') ELSE {0} END"

JSON: Table = {
    "IS JSON VALUE": (plain("STRING", BOOLEAN, _is_json("TRUE")),),
    "IS JSON OBJECT": (plain("STRING", BOOLEAN, _is_json("json_type({0}) = 'OBJECT'")),),
    "IS JSON ARRAY": (plain("STRING", BOOLEAN, _is_json("json_type({0}) = 'ARRAY'")),),
    "IS JSON SCALAR": (plain("STRING", BOOLEAN, _is_json(_SCALAR)),),
    "JSON_QUOTE": (plain("STRING", STRING, _QUOTED),),
    "JSON_UNQUOTE": (plain("STRING", STRING, _UNQUOTED),),
}

JSON_FORMS: Mapping[str, Special] = {"JSON_VALUE": json_value, "JSON_QUERY": json_query, "JSON_EXISTS": json_exists}
