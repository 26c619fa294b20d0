"""JSON_OBJECT, JSON_ARRAY, JSON_STRING: values as JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps

from service.plan import types
from service.plan.expressions import Call, Expression, Literal
from service.plan.types import BOOLEAN, STRING, Array, DataType, Decimal, Map, Row, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import template_of
from service.sql.expressions.type_rules import is_approximate, is_binary, is_integer, is_text
from service.sql.functions.signature import Form, Special, Table, built, constant_text, template_text

_RAW = ("JSON_OBJECT", "JSON_ARRAY", "JSON")

JSON_ITEM = "json_item"
"""The parameter of DuckDB's lambdas: no column has this name, since DuckDB would take the column's fields."""


def json_text(type_: DataType) -> str:
    """Return DuckDB text that writes {0}, of type `type_` and not NULL, as JSON. Raises SqlError for a type that JSON
    has no form for here."""
    if is_text(type_):
        return "CAST(to_json({0}) AS VARCHAR)"
    if is_integer(type_) or isinstance(type_, Decimal):
        return "CAST({0} AS VARCHAR)"
    if is_approximate(type_):
        return template_of(type_, STRING, False, "UTC") or ""
    if type_ == BOOLEAN:
        return "CAST({0} AS VARCHAR)"
    if is_binary(type_):
        return "'\"' || to_base64({0}) || '\"'"
    match type_:
        case Array(element):
            items = f"list_transform({{0}}, lambda {JSON_ITEM}: {_part(element, JSON_ITEM)})"
            return f"'[' || array_to_string({items}, ',') || ']'"
        case Map(key, value) if is_text(key):
            entry = f"CAST(to_json({JSON_ITEM}.key) AS VARCHAR) || ':' || {_part(value, f'{JSON_ITEM}.value')}"
            entries = "list_sort(map_entries({0}))"
            return f"'{{{{' || array_to_string(list_transform({entries}, lambda {JSON_ITEM}: {entry}), ',') || '}}}}'"
        case Row(names, fields):
            parts = [
                f"{template_text(_quoted(name) + ':')} || {_part(field, f'struct_extract_at({{0}}, {i})')}"
                for i, name, field in sorted(
                    zip(range(1, len(names) + 1), names, fields, strict=True), key=lambda f: _java_order(f[1])
                )
            ]
            joined = " || ',' || ".join(parts)
            return f"'{{{{' || {joined} || '}}}}'"
    raise SqlError(f"a value of type {flink(type_)} is not written as JSON here", hint="CAST it to STRING")


def _java_order(key: str) -> bytes:
    """What keys of an object are sorted by: Java compares texts by their UTF-16 units."""
    return key.encode("utf-16-be", "surrogatepass")


def _part(type_: DataType, argument: str) -> str:
    return f"coalesce({json_text(type_).replace('{0}', argument)}, 'null')"


def _quoted(text: str) -> str:
    return dumps(text, ensure_ascii=False)


def written_as_json(value: Expression, place: str) -> str:
    """Return a value as JSON text; what another function has written stays as it is."""
    if value.type == types.NULL:
        return "CAST(NULL AS VARCHAR)"
    if isinstance(value, Call) and value.name in _RAW:
        return place
    return json_text(value.type).replace("{0}", place)


def _absent(form: Form, default: str) -> bool:
    return (form.keywords["ON NULL"].name if "ON NULL" in form.keywords else default) == "ABSENT"


def json_object(form: Form) -> Expression:
    """Return JSON_OBJECT(KEY k VALUE v, ...); a NULL value is written unless ABSENT ON NULL.

    Keys come sorted. Of a key given twice the last value counts; where NULL is absent, the last that is not NULL.
    Raises SqlError for a key that is not constant.
    """
    values: list[Expression] = []
    keys: list[str] = []
    members: dict[str, str] = {}
    absent = _absent(form, "NULL")
    for key_node, node in zip(form.arguments[::2], form.arguments[1::2], strict=True):
        key = constant_text(form.compile(key_node))
        if key is None:
            raise SqlError("a key of JSON_OBJECT must be a text constant", at=key_node)
        keys.append(key)
        values.append(form.compile(node))
        text = written_as_json(values[-1], f"{{{len(values) - 1}}}")
        pair = f"{template_text(_quoted(key) + ':')} || {text}"
        if not absent:
            pair = f"coalesce({pair}, {template_text(_quoted(key) + ':null')})"
        elif key in members:
            pair = f"coalesce({pair}, {members[key]})"
        members[key] = pair
    parts = [members[key] for key in sorted(members, key=_java_order)]
    constants = (*keys, "ABSENT" if absent else "NULL")
    return Call(form.name, tuple(values), STRING, _enclosed("{{", parts, "}}"), constants=constants)


def json_array(form: Form) -> Expression:
    """Return JSON_ARRAY(v, ...): a NULL is left out unless NULL ON NULL."""
    values = tuple(form.compile(a) for a in form.arguments)
    absent = _absent(form, "ABSENT")
    texts = [written_as_json(v, f"{{{i}}}") for i, v in enumerate(values)]
    parts = texts if absent else [f"coalesce({t}, 'null')" for t in texts]
    constants = ("ABSENT" if absent else "NULL",)
    return Call(form.name, values, STRING, _enclosed("[", parts, "]"), constants=constants)


def _enclosed(start: str, parts: list[str], end: str) -> str:
    # concat_ws leaves NULL parts out, separator and all.
    inner = f"concat_ws(',', {', '.join(parts)})" if parts else "''"
    return f"('{start}' || {inner} || '{end}')"


def json_string(name: str, arguments: tuple[Expression, ...], context: object) -> Expression:
    """Return JSON_STRING(v): any value as JSON text, NULL for NULL."""
    (value,) = arguments
    if isinstance(value, Literal) and value.type == types.NULL:
        return Literal("CAST(NULL AS VARCHAR)", STRING, "NULL")
    return Call(name, arguments, STRING, f"CASE WHEN {{0}} IS NOT NULL THEN {json_text(value.type)} END")


JSON_WRITING: Table = {"JSON_STRING": (built("ANY", json_string),)}
JSON_WRITING_FORMS: Mapping[str, Special] = {"JSON_OBJECT": json_object, "JSON_ARRAY": json_array}
