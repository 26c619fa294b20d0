"""Parts of a projection that are computed once, and expressions in their faster form."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from operators.columns import weighted
from operators.time import Clock
from service.plan.canonical import canonical
from service.plan.expressions import Call, Column, Expression, render
from service.plan.lowering.faster import faster
from service.plan.lowering.kernels.rows import calc
from service.plan.lowering.shared_parts import shared_parts
from service.plan.types import BOOLEAN, DOUBLE, INT, STRING, DataType
from service.plan.versions import _versions
from tests.operators.properties import SQL, no_state, rows_of
from tests.sql.evaluation import compiled, computed

COLUMNS: dict[str, tuple[DataType, str]] = {
    "a": (STRING, "'x/y'"),
    "b": (STRING, "'12'"),
    "n": (INT, "1"),
    "p": (BOOLEAN, "true"),
    "q": (BOOLEAN, "NULL"),
}
SCHEMA = pa.schema(
    [("c0", pa.string()), ("c1", pa.string()), ("c2", pa.int32()), ("c3", pa.bool_()), ("c4", pa.bool_())]
)


def expressions(*texts: str) -> list[Expression]:
    return [faster(compiled(text, COLUMNS)) for text in texts]


@pytest.mark.parametrize(
    ("texts", "steps"),
    [
        (["UPPER(a)", "b"], ()),
        (["UPPER(a)", "UPPER(a)"], (("upper(c0)",),)),
        (["UPPER(a) || 'x'", "CHAR_LENGTH(UPPER(a))"], (("upper(c0)",),)),
        # What is made of a shared part, and shared itself, comes in a step after it.
        (["UPPER(a)", "LOWER(UPPER(a))", "LOWER(UPPER(a)) || 'x'"], (("upper(c0)",), ("lower(s0)",))),
        # What stands only in something that is computed once is computed once with it.
        (["LOWER(UPPER(a))", "LOWER(UPPER(a))"], (("lower(upper(c0))",),)),
        (["SPLIT_INDEX(a, '/', 0)", "SPLIT_INDEX(a, '/', 1)"], (("string_split(nullif(c0, ''), '/')",),)),
        (["SPLIT_INDEX(a, '/', 0)", "SPLIT_INDEX(a, ',', 1)"], ()),
        # Columns and constants are there already.
        (["a", "a", "'x'", "'x'", "NULLIF(n, n)"], ()),
        # A condition of CASE is computed for all rows, its branches are not.
        (["CASE WHEN LOWER(a) = 'x' THEN 1 WHEN LOWER(a) = 'y' THEN 2 END"], (("lower(c0)",),)),
        (["CASE WHEN p THEN CAST(b AS INT) END", "CASE WHEN q THEN CAST(b AS INT) END"], ()),
        (["TRY_CAST(b || 'x' AS INT)", "COALESCE(a, b || 'x')"], ()),
    ],
)
def test_a_part_is_shared_where_it_is_computed_for_every_row_anyway(texts, steps) -> None:
    assert shared_parts(expressions(*texts)).steps == steps


def test_a_draw_is_not_shared() -> None:
    drawn = Call("RAND", (Column(2, INT),), DOUBLE, "random({0})", deterministic=False)
    assert shared_parts([drawn, drawn]).steps == ()


ROWS = [
    ("x/y", "12", 1, True, None, 1),
    ("", "-", 0, None, True, -1),
    (None, None, None, False, False, 2),
    ("a/b", "7", 300, None, None, 1),
    ("//", "8", 2, True, True, 1),
]


@pytest.mark.parametrize(
    "texts",
    [
        ["CAST(b AS INT)", "CAST(b AS INT) + 1", "10 / n", "10 / n + CAST(b AS INT)"],
        ["CASE WHEN CAST(b AS INT) > 7 THEN 1 ELSE 10 / n END", "CAST(b AS INT) * 2", "10 / n"],
        ["SPLIT_INDEX(a, '/', 0)", "SPLIT_INDEX(a, '/', 1)", "SPLIT_INDEX(a, '/', 2)", "UPPER(SPLIT_INDEX(a, '/', 1))"],
        ["TRY_CAST(b AS INT)", "TRY_CAST(b AS INT) + 1", "CASE WHEN b <> '-' THEN CAST(b AS INT) END"],
    ],
)
@pytest.mark.parametrize("where", [None, "n <> 1", "p OR CAST(b AS INT) > 7"])
def test_rows_and_dead_rows_are_those_of_expressions_without_shared_parts(texts, where) -> None:
    condition = None if where is None else compiled(where, COLUMNS)
    kernel = calc(SCHEMA, [compiled(text, COLUMNS) for text in texts], condition)
    assert kernel.shared
    rows = pa.table([[row[i] for row in ROWS] for i in range(6)], schema=weighted(SCHEMA))
    found = [k.advance(no_state(), [rows], Clock(0, 0, 0), SQL) for k in (kernel, replace(kernel, shared=()))]
    assert rows_of(found[0].changes) == rows_of(found[1].changes)
    assert [rows_of(d) for d in found[0].dead.values()] == [rows_of(d) for d in found[1].dead.values()]


def test_shared_parts_of_several_runs_know_which_run_a_row_is_of() -> None:
    kernel = calc(SCHEMA, [compiled(text, COLUMNS) for text in ("UPPER(a)", "UPPER(a)")], None).per_block().kernel
    rows = pa.table([[row[i] for row in ROWS] for i in range(5)], schema=SCHEMA)
    rows = rows.append_column(kernel.inputs[0].field(5), pa.array(range(5), pa.int64()))
    rows = rows.append_column("_weight", pa.array([1] * 5, pa.int64()))
    answer = kernel.advance(no_state(), [rows], Clock(0, 0, 0), SQL).changes
    assert answer.column(2).to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "quick"),
    [
        ("REGEXP_EXTRACT(a, 'x') IS NULL", "(regexp_matches(c0, 'x') IS NOT TRUE)"),
        # What decides nothing and is never NULL need not be asked again.
        ("a IS NULL OR UPPER(a) = 'X'", "CASE WHEN (c0 IS NULL) THEN true ELSE ((upper(c0) = 'X')) END"),
        ("p OR UPPER(a) = 'X'", "CASE WHEN c3 THEN true ELSE (c3 OR (upper(c0) = 'X')) END"),
        ("a IS NOT NULL AND p AND UPPER(a) = 'X'", None),
        ("p AND (a IS NULL OR q IS TRUE) AND UPPER(a) = 'X'", None),
    ],
)
@pytest.mark.parametrize(
    "values", [(a, p, q) for a in ("'x'", "'y'", "NULL") for p in ("true", "NULL") for q in ("NULL",)]
)
def test_a_faster_form_has_the_same_value_whichever_operands_are_null(text, quick, values) -> None:
    given = {**COLUMNS, "a": (STRING, values[0]), "p": (BOOLEAN, values[1]), "q": (BOOLEAN, values[2])}
    expression = compiled(text, given)
    assert faster(expression) != expression
    if quick is not None:
        assert render(faster(expression)) == quick
    computed(expression, given)  # compares both forms


def test_what_a_query_means_does_not_depend_on_what_is_faster() -> None:
    expression = compiled("SPLIT_INDEX(a, '/', 1)", COLUMNS)
    assert isinstance(expression, Call)
    assert expression.faster is not None
    assert canonical(expression) == canonical(replace(expression, faster=None))


def test_what_is_faster_has_no_versions_of_its_own() -> None:
    expression = compiled("REGEXP_EXTRACT(a, 'x')", COLUMNS)
    assert set(dict(_versions(expression))) == {"function REGEXP_EXTRACT"}
