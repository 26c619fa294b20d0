"""Functions that look for equal elements of an ARRAY, and for equal keys of a MAP, as DuckDB text.

Law: the elements are sorted, so that equal ones are beside each other, and those that are kept are brought back into
their order: the time grows with n log n. To look for each element in the others takes hours for an array of a million.
"""

from __future__ import annotations

from collections.abc import Sequence

_SAME = "(i > 1 AND p.v IS NOT DISTINCT FROM s[i - 1].v)"
"""That an element equals the one before it, in sorted order; NULL equals NULL."""


def distinct(array: str) -> str:
    """Return the first of equal elements, in their order."""
    numbered = f"list_transform({array}, lambda e, i: struct_pack(v := e, i := i))"
    return _in_order(_kept(numbered, f"NOT {_SAME}"))


def intersect(array: str, other: str) -> str:
    """Return the first of equal elements of `array` that `other` has, too, in their order."""
    return _in_order(_kept(_of_two(array, other), f"p.mine AND {_SAME} AND NOT s[i - 1].mine"))


def without(array: str, other: str) -> str:
    """Return the first of equal elements of `array` that `other` does not have, in their order."""
    return _in_order(_kept(_of_two(array, other), f"p.mine AND NOT {_SAME}"))


def last_entries(pairs: str) -> str:
    """Return the last of the `pairs` (structs of k and v) of each key, in their order."""
    numbered = f"list_transform({pairs}, lambda e, i: struct_pack(v := e.k, i := i, entry := e))"
    last = _kept(numbered, "i = len(s) OR p.v IS DISTINCT FROM s[i + 1].v")
    placed = f"list_transform({last}, lambda p: struct_pack(i := p.i, v := p.entry))"
    return f"list_transform(list_sort({placed}), lambda p: p.v)"


def united(maps: Sequence[str]) -> str:
    """Return the entries (structs of k and v) of several maps, a key in its first place, with its last value."""
    entries = " || ".join(
        f"list_transform(map_entries({each}),"
        f" lambda e, i: struct_pack(v := e.key, m := {number}, i := i, value := e.value))"
        for number, each in enumerate(maps)
    )
    first = f"list_filter(s, lambda p, i: NOT {_SAME})"
    last = "list_filter(s, lambda p, i: i = len(s) OR p.v IS DISTINCT FROM s[i + 1].v)"
    placed = "struct_pack(m := p[1].m, i := p[1].i, k := p[2].v, v := p[2].value)"
    found = f"list_transform(list_zip({first}, {last}), lambda p: {placed})"
    return f"list_transform(list_sort({_sorted_as_s(entries, found)}), lambda p: struct_pack(k := p.k, v := p.v))"


def _of_two(array: str, other: str) -> str:
    """The elements of two arrays: of equal ones, those of `other` are first."""
    theirs = f"list_transform({other}, lambda e: struct_pack(v := e, mine := false, i := CAST(0 AS BIGINT)))"
    return f"{theirs} || list_transform({array}, lambda e, i: struct_pack(v := e, mine := true, i := i))"


def _kept(elements: str, condition: str) -> str:
    """Those of `elements` (structs of v, the number i and others) for which `condition` is true, sorted by v."""
    return _sorted_as_s(elements, f"list_filter(s, lambda p, i: {condition})")


def _sorted_as_s(elements: str, found: str) -> str:
    """What `found` makes of the sorted elements `s`, which are computed once."""
    return f"list_transform([list_sort({elements})], lambda s: {found})[1]"


def _in_order(elements: str) -> str:
    placed = f"list_transform({elements}, lambda p: struct_pack(i := p.i, v := p.v))"
    return f"list_transform(list_sort({placed}), lambda p: p.v)"
