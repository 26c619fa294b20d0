"""Where the steps of a plan stand when it is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.observability.page.drawing import Drawing, Passing, draw

JOINED = {"orders": [], "users": [], "join": ["orders", "users"], "sum": ["join"], "sink": ["sum"]}


def names(drawing: Drawing[str]) -> list[list[str]]:
    return [["|" if isinstance(node, Passing) else node for node in row] for row in drawing.rows]


def exchanges(drawing: Drawing[str]) -> int:
    return sum(
        (a - c) * (b - d) < 0 for lines in drawing.lines for at, (a, b) in enumerate(lines) for c, d in lines[at + 1 :]
    )


def test_every_step_stands_below_its_inputs():
    assert names(draw(JOINED)) == [["orders", "users"], ["join"], ["sum"], ["sink"]]


def test_a_table_stands_right_above_what_reads_it():
    plan = {"a": [], "b": [], "ab": ["a", "b"], "c": [], "abc": ["ab", "c"]}
    assert names(draw(plan)) == [["a", "b"], ["ab", "c"], ["abc"]]


def test_a_line_that_skips_rows_has_a_place_in_each_of_them():
    plan = {"a": [], "one": ["a"], "two": ["one"], "join": ["a", "two"]}
    drawing = draw(plan)
    assert sorted(map(len, names(drawing))) == [1, 1, 2, 2]
    assert [row.count("|") for row in names(drawing)] == [0, 1, 1, 0]


def test_a_join_of_a_table_with_itself_is_one_line():
    assert draw({"a": [], "join": ["a", "a"]}).lines == (((0, 0),),)


def test_rows_are_put_in_an_order_that_saves_crossings():
    plan: dict[str, list[str]] = {"a": [], "b": [], "c": [], "x": ["c"], "y": ["b"], "z": ["a"], "out": ["x", "y", "z"]}
    assert exchanges(draw(plan)) == 0


def test_nothing_at_all_is_drawn_as_nothing():
    assert draw({}) == Drawing((), ())


@st.composite
def plans(pick: st.DrawFn) -> dict[str, list[str]]:
    plan: dict[str, list[str]] = {}
    for number in range(pick(st.integers(1, 12))):
        before = list(plan)
        plan[f"n{number}"] = pick(st.lists(st.sampled_from(before), max_size=3)) if before else []
    return plan


@given(plans())
def test_the_lines_are_the_plan(plan: dict[str, list[str]]):
    drawing = draw(plan)
    assert sorted(n for row in drawing.rows for n in row if not isinstance(n, Passing)) == sorted(plan)
    above: dict[object, set[str]] = {}
    for number, row in enumerate(drawing.rows):
        for at, node in enumerate(row):
            upper = [drawing.rows[number - 1][a] for a, b in (drawing.lines[number - 1] if number else ()) if b == at]
            above[node] = set().union(*(above[u] if isinstance(u, Passing) else {u} for u in upper))
    assert {node: above[node] for node in plan} == {node: set(inputs) for node, inputs in plan.items()}
