"""The builder of statements: DuckDB reads what it writes, and the names of columns stand in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from operators import names
from operators.columns import duckdb_type
from operators.sql import Sql
from operators.sql_text import all_named, differ, every, inner, join, named, of, over, quoted, same, select, union_all

ROWS = pa.table({"k": [1, 1, None, None], "n": [1, 2, 3, 4]})
OPERATORS = Path(names.__file__).parent


def answer(statement: str, **tables: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in Sql()(statement, tables).to_pylist()]


@pytest.mark.parametrize("name", ["plain", "two words", 'say "hi"', "select", "", "{0}", "ü"])
def test_a_quoted_name_is_the_name_that_duckdb_answers_with(name: str):
    if name:
        assert Sql()(f"SELECT 1 AS {quoted(name)}", {}).column_names == [name]
    assert quoted(name)[1:-1].replace('""', '"') == name


def test_a_struct_whose_fields_have_names_of_users_is_a_type_that_duckdb_reads():
    type_ = pa.struct([('say "hi"', pa.int64()), ("order", pa.list_(pa.string()))])
    found = Sql()(f"SELECT CAST(NULL AS {duckdb_type(type_)}) AS s", {})
    assert [field.name for field in found.schema.field("s").type] == ['say "hi"', "order"]


def test_clauses_stand_in_the_order_of_sql():
    statement = select(
        ["k", "SUM(n) AS s"], "rows", where="n < 9", group_by=["k"], having="SUM(n) > 0", order_by=["k NULLS LAST"]
    )
    assert answer(statement, rows=ROWS) == [(1, 3), (None, 7)]
    ranked = select(["n"], "rows", where="k = 1", qualify=f"row_number() {over(['k'], ['n DESC'])} = 1")
    assert answer(ranked, rows=ROWS) == [(2,)]


def test_an_empty_group_is_all_rows_and_none_is_each_row():
    assert answer(select(["COUNT(*)"], "rows", group_by=[]), rows=ROWS) == [(4,)]
    assert answer(select(["1"], "rows"), rows=ROWS) == [(1,)] * 4


def test_keys_are_the_same_where_both_are_null():
    both = join("rows a", "rows b", same(of("a", ["k"]), of("b", ["k"])))
    assert answer(select(["COUNT(*)"], both), rows=ROWS) == [(8,)]
    assert answer(select(["COUNT(*)"], join("rows a", "rows b", same([], []))), rows=ROWS) == [(16,)]
    assert answer(select(["COUNT(*)"], "rows", where=differ(["k"], ["n"])), rows=ROWS) == [(3,)]
    assert answer(select(["COUNT(*)"], "rows", where=differ([], [])), rows=ROWS) == [(0,)]


def test_a_union_by_name_fills_the_columns_that_a_part_lacks():
    parts = [select(["n"], "rows", where="n = 1"), select([named("7", "m")], "rows", where="n = 1")]
    both = inner(union_all(parts, by_name=True), "u")
    assert answer(select(["n", "m"], both, order_by=["n NULLS LAST"]), rows=ROWS) == [(1, None), (None, 7)]


def test_conditions_that_are_none_are_left_out():
    assert every([None, "a", "", "b"]) == "a AND b"
    assert every([]) == ""


def test_lists_that_do_not_match_are_refused():
    for make in (all_named, same, differ):
        with pytest.raises(ValueError, match="shorter"):
            make(["a", "b"], ["c"])


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module that is no docstring, with its line; what an f-string inserts is a question mark."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(v.value) if isinstance(v, ast.Constant) else "?" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (prose | inside):
            yield node.lineno, node.value


KERNELS = sorted(
    path for path in OPERATORS.rglob("*.py") if path.name not in ("names.py", "sql_text.py", "sql.py", "fingerprint.py")
)
"""The modules that write statements. `sql.py` runs them, and a fingerprint is a text of its own."""


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (r"(?<![\w'])_[a-z]", "a constant of operators/names.py"),
        (r"(?<![\w'])[cvo]\?", "column, value_of or old_answers"),
        (r"\bPARTITION BY\b", "over"),
        (r"\bAS \?$", "named"),
        (r"^, $", "comma"),
        (r"^ AND $", "every or same"),
        (r"^ OR $", "differ"),
    ],
)
def test_kernels_take_names_lists_and_keys_from_one_place(pattern: str, instead: str):
    found = [
        f"{path.relative_to(OPERATORS)}:{line}: {text!r} (use {instead})"
        for path in KERNELS
        for line, text in texts_of(path)
        if re.search(pattern, text)
    ]
    assert found == []
