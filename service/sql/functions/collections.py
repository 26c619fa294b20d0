"""Arrays, maps and rows: making them, reaching into them, the ARRAY_ and MAP_ functions. Positions count from one."""

from __future__ import annotations

from collections.abc import Callable

from service.plan.expressions import Call, Expression
from service.plan.types import BOOLEAN, INT, STRING, Array, DataType, Map, Multiset, Row, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast, identifier
from service.sql.expressions.context import Context
from service.sql.expressions.literals import string
from service.sql.expressions.type_rules import common_type, is_integer
from service.sql.functions.equal_elements import distinct, intersect, last_entries, united, without
from service.sql.functions.logic import unified
from service.sql.functions.patterns import checked_pattern, groups_of
from service.sql.functions.signature import (
    Arguments,
    Table,
    built,
    constant_integer,
    constant_text,
    plain,
    same,
    template_text,
)


def _places(count: int, start: int = 0, step: int = 1) -> str:
    return ", ".join(f"{{{i}}}" for i in range(start, count, step))


def _array(name: str, arguments: Arguments, context: Context) -> Expression:
    """ARRAY[a, b, ...]."""
    elements = unified(arguments, context, "ARRAY")
    return Call("ARRAY", elements, Array(elements[0].type), f"[{_places(len(elements))}]")


def _map(name: str, arguments: Arguments, context: Context) -> Expression:
    """MAP[key, value, ...]."""
    if len(arguments) % 2:
        raise SqlError("MAP takes keys and values in turn", hint="write MAP['a', 1, 'b', 2]")
    keys, values = unified(arguments[::2], context, "MAP"), unified(arguments[1::2], context, "MAP")
    pairs = tuple(a for pair in zip(keys, values, strict=True) for a in pair)
    count = len(pairs)
    template = f"map([{_places(count, 0, 2)}], [{_places(count, 1, 2)}])"
    return Call("MAP", pairs, Map(keys[0].type, values[0].type), template)


def _row(name: str, arguments: Arguments, context: Context) -> Expression:
    """ROW(a, b, ...): its fields have names that are not meant to be used."""
    names = tuple(f"EXPR${i}" for i in range(len(arguments)))
    fields = ", ".join(f"{identifier(n)} := {{{i}}}" for i, n in enumerate(names))
    return Call("ROW", arguments, Row(names, tuple(a.type for a in arguments)), f"struct_pack({fields})")


def _access(name: str, arguments: Arguments, context: Context) -> Expression:
    """array[position] and map[key]: NULL where there is nothing."""
    container, key = arguments
    match container.type:
        case Array(element):
            if not is_integer(key.type):
                raise SqlError(f"the position in an ARRAY is a number, not {flink(key.type)}")
            position = constant_integer(key)
            if position is not None and position < 1:
                raise SqlError(f"positions in an ARRAY count from 1, not {position}")
            template = "{0}[{1}]" if position else "CASE WHEN {1} >= 1 THEN {0}[{1}] END"
            return Call("[]", arguments, element, template)
        case Map(kind, value):
            return Call("[]", (container, cast(key, kind, implicit=True, zone=context.zone)), value, "{0}[{1}]")
    raise SqlError(f"{flink(container.type)} has no elements", hint="only an ARRAY and a MAP have")


def _element_of(type_: DataType) -> DataType:
    assert isinstance(type_, Array)
    return type_.element


def _with_element(template: str, result: DataType | None = None) -> Callable[[str, Arguments, Context], Expression]:
    """A function of an array and a value, which takes the type of the elements."""

    def build(name: str, arguments: Arguments, context: Context) -> Expression:
        array, value = arguments
        element = common_type((_element_of(array.type), value.type))
        if element is None:
            raise SqlError(f"{name}: {flink(value.type)} is not an element of {flink(array.type)}", hint="use CAST")
        both = (cast(array, Array(element), implicit=True), cast(value, element, implicit=True))
        return Call(name, both, result or Array(element), template)

    return build


def _of_arrays(template: str) -> Callable[[str, Arguments, Context], Expression]:
    """A function of arrays, which take one type."""

    def build(name: str, arguments: Arguments, context: Context) -> Expression:
        arrays = unified(arguments, context, name)
        text = (
            template if "{1}" in template or len(arrays) == 1 else " || ".join(f"{{{i}}}" for i in range(len(arrays)))
        )
        return Call(name, arrays, arrays[0].type, text)

    return build


def _element(template: str) -> Callable[[str, Arguments, Context], Expression]:
    return lambda name, arguments, context: Call(name, arguments, _element_of(arguments[0].type), template)


def _cardinality(name: str, arguments: tuple[Expression, ...], _: object) -> Expression:
    """How many entries a MAP has, or elements a MULTISET, each as often as it is there."""
    template = "CAST(cardinality({0}) AS INTEGER)"
    if isinstance(arguments[0].type, Multiset):
        count = "coalesce(list_sum(map_values({0})), 0)"
        template = f"(CASE WHEN {{0}} IS NOT NULL THEN CAST({count} AS INTEGER) END)"
    return Call(name, arguments, INT, template)


_KNOWN = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN {what} END"


def _known(what: str) -> str:
    return _KNOWN.replace("{what}", what)


_CONTAINS = "(len(list_filter({0}, lambda x: x IS NOT DISTINCT FROM {1})) > 0)"
_POSITION = (
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN CAST(coalesce(list_position({0}, {1}), 0) AS INTEGER) END"
)
_FIRST = "CASE WHEN {1} = 0 THEN 1 ELSE {1} END"
_LAST = "CASE WHEN {2} = 0 THEN 1 ELSE {2} END"
# The cast of what is no number is what raises.
_ONLY = "CASE WHEN len({0}) > 1 THEN [{0}[1]][CAST('ELEMENT: ' || len({0}) || ' elements' AS INTEGER)] ELSE {0}[1] END"


def _sorted(name: str, arguments: Arguments, context: Context) -> Expression:
    """ARRAY_SORT(array[, ascending[, nulls_first]]): ascending, NULL first; with FALSE descending, NULL last."""

    def sort(order: str, nulls: str) -> str:
        return f"list_sort({{0}}, '{order}', 'NULLS {nulls}')"

    def either(order: str, default: str) -> str:
        if len(arguments) < 3:
            return sort(order, default)
        return f"CASE WHEN {{2}} THEN {sort(order, 'FIRST')} WHEN NOT {{2}} THEN {sort(order, 'LAST')} END"

    template = sort("ASC", "FIRST")
    if len(arguments) > 1:
        template = f"CASE WHEN {{1}} THEN {either('ASC', 'FIRST')} WHEN NOT {{1}} THEN {either('DESC', 'LAST')} END"
    return Call(name, arguments, arguments[0].type, template)


def _joined(name: str, arguments: Arguments, context: Context) -> Expression:
    """Elements as text, NULL left out or replaced."""
    if constant_text(arguments[1]) is None:
        raise SqlError(f"the separator of {name} must be a constant text")
    texts = cast(arguments[0], Array(STRING), implicit=True)
    parts = "{0}" if len(arguments) == 2 else "list_transform({0}, lambda x: coalesce(x, {2}))"
    template = (
        f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN coalesce(array_to_string({parts}, {{1}}), '') END"
    )
    return Call(name, (texts, *arguments[1:]), STRING, template)


def _keys(name: str, arguments: Arguments, context: Context) -> Expression:
    (map_,) = arguments
    assert isinstance(map_.type, Map)
    match name:
        case "MAP_KEYS":
            return Call(name, arguments, Array(map_.type.key), "map_keys({0})")
        case "MAP_VALUES":
            return Call(name, arguments, Array(map_.type.value), "map_values({0})")
        case _:
            entry = Row(("key", "value"), (map_.type.key, map_.type.value))
            return Call(name, arguments, Array(entry), "map_entries({0})")


def _from_arrays(name: str, arguments: Arguments, context: Context) -> Expression:
    keys, values = arguments
    return Call(name, arguments, Map(_element_of(keys.type), _element_of(values.type)), "map({0}, {1})")


def _united(name: str, arguments: Arguments, context: Context) -> Expression:
    """MAP_UNION(a, b, ...): of a key that several have, the value of the last; NULL if one is."""
    maps = unified(arguments, context, name)
    known = " AND ".join(f"{{{i}}} IS NOT NULL" for i in range(len(maps)))
    entries = united([f"{{{i}}}" for i in range(len(maps))])
    return Call(name, maps, maps[0].type, f"CASE WHEN {known} THEN map_from_entries({entries}) END")


def _from_text(name: str, arguments: Arguments, context: Context) -> Expression:
    """STR_TO_MAP(text[, between entries[, between key and value]]): both are regular expressions, of a key that is
    given twice the last value counts, an entry without a value has NULL."""
    between, inside = (checked_pattern(a) for a in (*arguments[1:], *_STR_TO_MAP_DEFAULTS[len(arguments) - 1 :]))
    if between is None or inside is None:
        raise SqlError(f"the separators of {name} must be constants")
    parts = f"string_split_regex({{0}}, {template_text(between)})"
    # As in Java: what is empty at the end is no entry.
    last = f"coalesce(list_max(list_transform({parts}, lambda p, i: CASE WHEN p <> '' THEN i END)), 0)"
    split = template_text(f"^(?s:(.*?))(?:{inside})(?s:(.*))$")
    value = groups_of(inside) + 2
    pair = (
        f"CASE WHEN regexp_matches(p, {split}) THEN"
        f" struct_pack(k := regexp_extract(p, {split}, 1), v := regexp_extract(p, {split}, {value}))"
        " ELSE struct_pack(k := p, v := CAST(NULL AS VARCHAR)) END"
    )
    pairs = f"list_transform({parts}[1:{last}], lambda p: {pair})"
    template = f"CASE WHEN {{0}} IS NOT NULL THEN map_from_entries({last_entries(pairs)}) END"
    return Call(name, arguments[:1], Map(STRING, STRING), template)


_STR_TO_MAP_DEFAULTS = (string(","), string("="))


COLLECTIONS: Table = {
    "ARRAY[]": (built("ANY, ANY*", _array),),
    "MAP[]": (built("ANY, ANY, ANY*", _map),),
    "ROW": (built("ANY, ANY*", _row),),
    "[]": (built("ANY, ANY", _access),),
    "CARDINALITY": (
        plain("ARRAY", INT, "CAST(len({0}) AS INTEGER)"),
        built("MAP", _cardinality),
    ),
    "ELEMENT": (built("ARRAY", _element(_ONLY)),),
    "ARRAY_CONTAINS": (built("ARRAY, ANY", _with_element(_CONTAINS, BOOLEAN)),),
    "ARRAY_POSITION": (built("ARRAY, ANY", _with_element(_POSITION, INT)),),
    "ARRAY_REMOVE": (built("ARRAY, ANY", _with_element("list_filter({0}, lambda x: x IS DISTINCT FROM {1})")),),
    "ARRAY_APPEND": (built("ARRAY, ANY", _with_element("CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END")),),
    "ARRAY_PREPEND": (built("ARRAY, ANY", _with_element("CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END")),),
    "ARRAY_DISTINCT": (plain("ARRAY", same, distinct("{0}")),),
    "ARRAY_REVERSE": (plain("ARRAY", same, "list_reverse({0})"),),
    "ARRAY_SORT": (
        built("ARRAY", _sorted),
        built("ARRAY, BOOLEAN", _sorted),
        built("ARRAY, BOOLEAN, BOOLEAN", _sorted),
    ),
    "ARRAY_SLICE": (
        plain("ARRAY, INT", same, f"list_slice({{0}}, {_FIRST}, len({{0}}))"),
        plain("ARRAY, INT, INT", same, f"list_slice({{0}}, {_FIRST}, {_LAST})"),
    ),
    "ARRAY_CONCAT": (built("ARRAY, ARRAY*", _of_arrays("{0}")),),
    "ARRAY_UNION": (built("ARRAY, ARRAY", _of_arrays(_known(distinct("({0} || {1})")))),),
    "ARRAY_INTERSECT": (built("ARRAY, ARRAY", _of_arrays(_known(intersect("{0}", "{1}")))),),
    "ARRAY_EXCEPT": (built("ARRAY, ARRAY", _of_arrays(_known(without("{0}", "{1}")))),),
    "ARRAY_MAX": (built("ARRAY", _element("list_max({0})")),),
    "ARRAY_MIN": (built("ARRAY", _element("list_min({0})")),),
    "ARRAY_JOIN": (built("ARRAY, STRING", _joined), built("ARRAY, STRING, STRING", _joined)),
    "MAP_KEYS": (built("MAP", _keys),),
    "MAP_VALUES": (built("MAP", _keys),),
    "MAP_ENTRIES": (built("MAP", _keys),),
    "MAP_FROM_ARRAYS": (built("ARRAY, ARRAY", _from_arrays),),
    "MAP_UNION": (built("MAP, MAP*", _united),),
    "STR_TO_MAP": tuple(built(given, _from_text) for given in ("STRING", "STRING, STRING", "STRING, STRING, STRING")),
}
