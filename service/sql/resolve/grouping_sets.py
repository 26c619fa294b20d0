"""GROUPING SETS, CUBE and ROLLUP: the sets of keys that a query groups by, and the functions that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from service.sql.errors import SqlError
from service.sql.resolve.syntax import call_name, canonical, reference
from service.sql.scope import INTERNAL, Scope

SET = f"{INTERNAL}grouping_set"
"""The column over the aggregate that says which grouping set, by its place in the list, a row is of."""

FUNCTIONS = ("GROUPING", "GROUPING_ID", "GROUP_ID")

_MOST = 256
"""Each set is a copy of all rows: more of them are a mistake rather than a query."""

_Sets = list[list[exp.Expr]]


@dataclass(frozen=True, slots=True)
class GroupedBy:
    """The list of GROUP BY: its different expressions, `nodes`, and each grouping set as their canonical texts. Without
    GROUPING SETS, CUBE or ROLLUP there is one set, of all of them."""

    nodes: tuple[exp.Expr, ...]
    sets: tuple[frozenset[str], ...]

    @property
    def several(self) -> bool:
        """Whether rows must say which set they are of."""
        return len(self.sets) > 1


ALL_KEYS = GroupedBy((), (frozenset(),))
"""The grouping of a query that cannot have grouping sets, and has no functions to tell them apart."""


def is_grouping_sets(node: exp.Expr) -> bool:
    """Return whether `node`, of GROUP BY, is GROUPING SETS, CUBE or ROLLUP."""
    return isinstance(node, exp.GroupingSets | exp.Cube | exp.Rollup)


def nodes_in(group: exp.Expr) -> list[exp.Expr]:
    """Return the expressions of a GROUP BY clause, those of grouping sets included, each once as it is written."""
    found: dict[str, exp.Expr] = {}
    pending = list(reversed(group.expressions))
    while pending:
        each = pending.pop()
        if is_grouping_sets(each) or isinstance(each, exp.Tuple):
            pending += reversed(each.expressions)
        else:
            found.setdefault(each.sql(comments=False), each)
    return list(found.values())


def grouped_by(group: exp.Expr | None, scope: Scope) -> GroupedBy:
    """Return the grouping sets of a GROUP BY clause: the product of those of its items. Raises SqlError for too
    many."""
    items = list(group.expressions) if group is not None else []
    count = 1
    listed: list[_Sets] = []
    for item in items:
        listed.append(_sets(item))
        count *= len(listed[-1])
        if count > _MOST:
            raise SqlError(
                f"GROUP BY has more than {_MOST} grouping sets",
                detail="each of them groups all rows once more",
                hint="list the sets that are needed: GROUPING SETS ((a, b), (a))",
                at=item,
            )
    nodes: dict[str, exp.Expr] = {}
    sets: list[frozenset[str]] = []
    for choice in product(*listed):
        texts = {canonical(node, scope): node for part in choice for node in part}
        for text, node in texts.items():
            nodes.setdefault(text, node)
        sets.append(frozenset(texts))
    return GroupedBy(tuple(nodes.values()), tuple(sets))


def _sets(item: exp.Expr) -> _Sets:
    match item:
        case exp.GroupingSets():
            return [each for part in item.expressions for each in _sets(part)]
        case exp.Rollup():
            parts = [_columns(part) for part in item.expressions]
            return [_joined(parts[:count]) for count in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_columns(part) for part in item.expressions]
            if 2 ** len(parts) > _MOST:
                raise SqlError(
                    f"CUBE of {len(parts)} columns has {2 ** len(parts)} grouping sets",
                    detail=f"there may be {_MOST}",
                    hint="list the sets that are needed: GROUPING SETS ((a, b), (a))",
                    at=item,
                )
            counts = range(len(parts), -1, -1)
            return [_joined(chosen) for count in counts for chosen in combinations(parts, count)]
        case _:
            return [_columns(item)]


def _columns(item: exp.Expr) -> list[exp.Expr]:
    return list(item.expressions) if isinstance(item, exp.Tuple) else [item]


def _joined(parts: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [node for part in parts for node in part]


def is_grouping_function(node: exp.Expr) -> bool:
    """Return whether `node` is GROUPING(...), GROUPING_ID(...) or GROUP_ID()."""
    return call_name(node) in FUNCTIONS


def grouping_value(node: exp.Expr, grouped: GroupedBy, scope: Scope) -> exp.Expr:
    """Return what GROUPING and its companions answer, as an expression over the column SET.

    GROUPING(a, b), which GROUPING_ID is another name of, has a bit for each argument, the last the lowest: 1 where the
    set of the row does not group by it. GROUP_ID() numbers the sets that are equal, from 0.
    """
    name = call_name(node)
    if name == "GROUP_ID":
        if node.expressions:
            raise SqlError("GROUP_ID takes no argument", at=node)
        return _by_set(node, grouped, lambda place: grouped.sets[:place].count(grouped.sets[place]))
    if not node.expressions:
        raise SqlError(f"{name} lacks an argument", at=node)
    known = frozenset().union(*grouped.sets)
    wanted = [canonical(argument, scope) for argument in node.expressions]
    for text, argument in zip(wanted, node.expressions, strict=True):
        if text not in known:
            raise SqlError(f"{name} is about what the query groups by, and this is not among it", at=argument)

    def bits(place: int) -> int:
        return sum((text not in grouped.sets[place]) << shift for shift, text in enumerate(reversed(wanted)))

    return _by_set(node, grouped, bits)


def _by_set(node: exp.Expr, grouped: GroupedBy, value: Callable[[int], int]) -> exp.Expr:
    """The value of each set, as a CASE over the column that names it."""
    if not grouped.several:
        return _number(value(0))
    branches = [exp.If(this=_number(place), true=_number(value(place))) for place in range(len(grouped.sets))]
    return exp.Case(this=reference(SET, node), ifs=branches[:-1], default=branches[-1].args["true"])


def _number(value: int) -> exp.Expr:
    return exp.Cast(this=exp.Literal.number(value), to=exp.DataType.build("BIGINT"))
