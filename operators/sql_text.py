"""The text of DuckDB statements, put together from items, keys and clauses.

Expressions are DuckDB text; what holds them together is here: select lists, groups, conditions over keys, windows,
names. Equal parts make equal text, as a statement is kept prepared by its text (`operators/sql.py`). A statement of
several steps is easier to read as it is: it stands as one text, and takes only its lists and conditions from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def quoted(name: str) -> str:
    """Return the identifier `name`, which may hold anything, as DuckDB reads it.

    >>> quoted('say "hi"')
    '"say ""hi\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def comma(items: Iterable[str]) -> str:
    """Return a list of expressions; empty ones are left out."""
    return ", ".join(filter(None, items))


def named(text: str, name: str) -> str:
    """Return the item of a SELECT list that gives the expression `text` a name."""
    return f"{text} AS {name}"


def all_named(texts: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the items that give each of `texts` its name. Raises ValueError if they are not as many.

    >>> all_named(["c1", "c0"], ["k0", "k1"])
    ['c1 AS k0', 'c0 AS k1']
    """
    return [named(text, name) for text, name in zip(texts, names, strict=True)]


def total(name: str) -> str:
    """Return the item that sums the whole numbers in `name`, as BIGINT, under the same name.

    >>> total("_weight")
    'CAST(SUM(_weight) AS BIGINT) AS _weight'
    """
    return named(f"CAST(SUM({name}) AS BIGINT)", name)


def of_those(function: str, text: str, condition: str | None = None) -> str:
    """Return the call of an aggregate that passes NULL over, of `text` (or * of COUNT) in the rows that meet the
    condition.

    FILTER says the same, but for each such call DuckDB copies the arguments of all calls of the statement: 32 of them
    take two to five times as long, over few rows and over many.

    >>> of_those("SUM", "_weight", "c1 IS NOT NULL")
    'SUM(CASE WHEN c1 IS NOT NULL THEN _weight END)'
    >>> of_those("COUNT", "*", "c1"), of_those("COUNT", "*")
    ('COUNT(CASE WHEN c1 THEN 1 END)', 'COUNT(*)')
    """
    if not condition:
        return f"{function}({text})"
    return f"{function}(CASE WHEN {condition} THEN {1 if text == '*' else text} END)"


def of(relation: str, names: Iterable[str]) -> list[str]:
    """Return the columns `names` of one relation of a statement.

    >>> of("r", ["k0", "k1"])
    ['r.k0', 'r.k1']
    """
    return [f"{relation}.{name}" for name in names]


def select(
    items: Iterable[str],
    source: str,
    *,
    where: str = "",
    group_by: Sequence[str] | None = None,
    having: str = "",
    qualify: str = "",
    order_by: Sequence[str] = (),
) -> str:
    """Return a SELECT statement over `source`: a relation, or what `inner` or `join` return.

    Without a group (None) the rows are not aggregated; with an empty one all of them are one group.

    >>> select(["k0", total("n")], "rows", where="tag = 0", group_by=["k0"])
    'SELECT k0, CAST(SUM(n) AS BIGINT) AS n FROM rows WHERE tag = 0 GROUP BY k0'
    >>> select(["COUNT(*) AS n"], "rows", group_by=[])
    'SELECT COUNT(*) AS n FROM rows GROUP BY ()'
    """
    clauses = [f"SELECT {comma(items)} FROM {source}"]
    if where:
        clauses.append(f"WHERE {where}")
    if group_by is not None:
        clauses.append(f"GROUP BY {comma(group_by) or '()'}")
    if having:
        clauses.append(f"HAVING {having}")
    if qualify:
        clauses.append(f"QUALIFY {qualify}")
    if order_by:
        clauses.append(f"ORDER BY {comma(order_by)}")
    return " ".join(clauses)


def inner(statement: str, alias: str = "") -> str:
    """Return `statement` as a relation of another one.

    >>> select(["k"], inner(select(["k", "n"], "rows"), "r"))
    'SELECT k FROM (SELECT k, n FROM rows) AS r'
    """
    return named(f"({statement})", alias) if alias else f"({statement})"


def join(left: str, right: str, on: str, how: str = "JOIN") -> str:
    """Return the relation of the rows of `left` and `right` that meet the condition `on`."""
    return f"{left} {how} {right} ON {on}"


def union_all(statements: Iterable[str], *, by_name: bool = False) -> str:
    """Return the rows of all `statements`; with `by_name` a column that one of them lacks is NULL in its rows."""
    return f" UNION ALL {'BY NAME ' if by_name else ''}".join(statements)


def every(conditions: Iterable[str | None]) -> str:
    """Return the condition that all `conditions` are met; None is no condition, and of none the text is empty."""
    return " AND ".join(condition for condition in conditions if condition)


def either(conditions: Iterable[str]) -> str:
    """Return the condition that one of `conditions` is met.

    >>> either(["a > 0", "b"])
    '(a > 0 OR b)'
    """
    return f"({' OR '.join(conditions)})"


def same(left: Iterable[str], right: Iterable[str]) -> str:
    """Return the condition that two rows have equal keys, where NULL is equal to NULL; without keys it is met.

    >>> same(["r.k0"], ["b.k0"])
    'r.k0 IS NOT DISTINCT FROM b.k0'
    >>> same([], [])
    'true'
    """
    return every(f"{a} IS NOT DISTINCT FROM {b}" for a, b in zip(left, right, strict=True)) or "true"


def differ(left: Iterable[str], right: Iterable[str]) -> str:
    """Return the condition that two rows differ in some column, where NULL is equal to NULL; without columns never.

    >>> differ(["o0", "o1"], ["n0", "n1"])
    'o0 IS DISTINCT FROM n0 OR o1 IS DISTINCT FROM n1'
    """
    return " OR ".join(f"{a} IS DISTINCT FROM {b}" for a, b in zip(left, right, strict=True)) or "false"


def window(partition: Iterable[str] = (), order: Iterable[str] = (), frame: str = "") -> str:
    """Return a window, as it stands behind OVER or in a WINDOW clause.

    >>> window(["c0"], ["_n"])
    '(PARTITION BY c0 ORDER BY _n)'
    """
    by, along = comma(partition), comma(order)
    return f"({' '.join(filter(None, [by and f'PARTITION BY {by}', along and f'ORDER BY {along}', frame]))})"


def over(partition: Iterable[str] = (), order: Iterable[str] = (), frame: str = "") -> str:
    """Return an OVER clause.

    >>> over(["c0"], ["_n"], "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")
    'OVER (PARTITION BY c0 ORDER BY _n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)'
    >>> over()
    'OVER ()'
    """
    return f"OVER {window(partition, order, frame)}"
