"""A plan becomes a program: what runs where rows enter, what is exchanged, what shares a level."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from service.plan.lowering.lower import compile_job
from service.plan.nodes import Job, JoinKind, Place, Union
from service.plan.program import Program
from service.plan.table import Connector, Format
from service.sql.pipeline import load
from tests.plan.build import (
    ORDERS,
    OUT,
    USERS,
    column,
    job,
    joined,
    more,
    number,
    plus,
    project,
    scan,
    sink,
    table,
    total,
    tumbled,
    where,
)

orders = scan(ORDERS)
users = scan(USERS)
APPENDED = table("appended", "a s", "b n")
CITIES = table("cities", "city s", "total n", key=("city",), fmt="debezium-json")


def drawn(program: Program) -> list[str]:
    """Each operator as 'level name < producer(key)'."""
    names = {s.id: s.table.name for s in program.sources} | {o.id: o.name for o in program.operators}
    lines = []
    for o in program.operators:
        inputs = ", ".join(names[e.producer] + ("" if e.key is None else str(list(e.key))) for e in o.inputs)
        lines.append(f"{o.level} {o.name} < {inputs}")
    return lines + [f"{names[o.edge.producer]} > {o.table.name}" for o in program.outputs]


def compiled(job: Job, late_rows: bool = False) -> list[str]:
    return drawn(compile_job(job, late_rows=late_rows))


def test_a_projection_and_its_filter_are_one_step_where_rows_enter():
    rows = project(where(orders, more(column(orders, "amount"), number(1))), a="user", b="amount")
    program = compile_job(job(sink(rows, APPENDED)))
    assert drawn(program) == ["0 calc_1 < orders", "calc_1 > appended"]
    assert program.levels == 0
    assert program.operators[0].kernel.where == "(c1 > CAST(1 AS BIGINT))"  # type: ignore[attr-defined]


def test_a_source_reads_its_watermark_from_its_own_columns():
    windows = project(tumbled(orders, ("note",), "amount"), a="note", b="total")
    program = compile_job(job(sink(windows, APPENDED)))
    assert program.sources[0].columns == (1, 2, 3)
    assert program.sources[0].watermark == "c1"


def test_a_group_is_totalled_before_the_exchange_and_again_after_it():
    program = compile_job(job(sink(total(orders, ("user",), "amount"), OUT)))
    assert drawn(program) == [
        "0 group_partial_1 < orders",
        "1 group_by_1 < group_partial_1[0]",
        "1 consolidate_1 < group_by_1",
        "consolidate_1 > out",
    ]
    assert program.levels == 1
    assert (program.outputs[0].append, program.outputs[0].key) == (False, (0,))


def test_a_join_and_a_group_by_its_key_share_a_level():
    pair = joined(orders, users, ("user", "id"))
    assert (
        compiled(job(sink(total(pair, ("id",), "amount"), OUT)))
        == [
            "0 calc_1 < orders",
            "1 join_1 < orders[0], users[0]",
            "1 group_partial_1 < join_1",
            "1 group_by_1 < group_partial_1",
            "1 consolidate_1 < group_by_1",
            "consolidate_1 > out",
        ][1:]
    )


def test_a_padded_side_of_a_join_does_not_say_where_its_rows_are():
    pair = joined(orders, users, ("user", "id"), JoinKind.LEFT)
    lines = compiled(job(sink(total(pair, ("id",), "amount"), OUT)))
    assert "2 group_by_1 < group_partial_1[0]" in lines


def test_a_group_by_another_column_is_one_exchange_further():
    pair = joined(orders, users, ("user", "id"))
    assert compiled(job(sink(total(pair, ("city",), "amount"), CITIES)))[1:] == [
        "1 group_partial_1 < join_1",
        "2 group_by_1 < group_partial_1[0]",
        "2 consolidate_1 < group_by_1",
        "consolidate_1 > cities",
    ]


def test_a_second_input_comes_straight_to_the_level_of_the_first():
    counted = total(orders, ("user",), "amount")
    pair = joined(counted, users, ("user", "id"))
    lines = compiled(job(sink(project(pair, a="user", b="total"), OUT)))
    assert "1 join_1 < group_by_1, users[0]" in lines


def test_changes_are_exchanged_by_the_key_of_the_sink_where_it_is_another():
    by_total = table("by_total", "user s", "total n", key=("total",), fmt="debezium-json")
    assert compiled(job(sink(total(orders, ("user",), "amount"), by_total)))[-2:] == [
        "2 materialize_1 < group_by_1[1]",
        "materialize_1 > by_total",
    ]


def test_the_inputs_of_a_union_meet_only_where_a_key_asks_for_it():
    united = Union(inputs=(orders, scan(replace(ORDERS, name="others"))), fields=orders.fields)
    narrow = project(united, a="user", b="amount")
    assert compiled(job(sink(narrow, APPENDED)))[-2:] == ["orders > appended", "others > appended"]
    lines = compiled(job(sink(total(united, ("user",), "amount"), OUT)))
    assert "1 union_1 < group_partial_1[0], group_partial_2[0]" in lines
    assert "1 group_by_1 < union_1" in lines


def test_a_shared_view_runs_once_for_two_sinks():
    view = total(orders, ("user",), "amount")
    other = replace(OUT, name="other")
    lines = compiled(job(sink(view, OUT), sink(where(view, more(column(view, "total"), number(5))), other)))
    assert [line for line in lines if "group_by" in line and line.startswith("1 group")] == [
        "1 group_by_1 < group_partial_1[0]"
    ]
    assert lines[-2:] == ["consolidate_1 > out", "consolidate_2 > other"]


def test_windows_get_whole_rows_where_late_ones_are_to_be_seen():
    windows = project(tumbled(orders, ("user",), "amount"), a="user", b="total")
    assert compiled(job(sink(windows, APPENDED)))[:2] == [
        "0 window_partial_1 < orders",
        "1 window_aggregate_1 < window_partial_1[0]",
    ]
    assert compiled(job(sink(windows, APPENDED)), late_rows=True)[:2] == [
        "1 window_partial_1 < orders[0]",
        "1 window_aggregate_1 < window_partial_1",
    ]


def test_all_rows_of_a_group_without_keys_meet_in_one_shard():
    everything = total(orders, (), "amount")
    lines = compiled(job(sink(everything, table("all", "total n", fmt="debezium-json"))))
    assert "1 group_by_1 < group_partial_1[]" in lines


def test_a_program_can_be_shipped():
    program = compile_job(job(sink(total(joined(orders, users, ("user", "id")), ("id",), "amount"), OUT)))
    assert drawn(pickle.loads(pickle.dumps(program))) == drawn(program)


def test_the_fingerprint_knows_the_query_and_not_how_it_is_written():
    def of(amount: int, name: str = "total", place: Place = Place()) -> str:  # noqa: B008
        view = project(orders, user="user", n=plus(column(orders, "amount"), number(amount)))
        groups = replace(total(view, ("user",), "n"), place=place)
        named = replace(groups, fields=(groups.fields[0], replace(groups.fields[1], name=name)))
        return compile_job(job(sink(named, OUT))).fingerprint

    assert of(1) == of(1, "renamed", Place(9, 9))
    assert of(1) != of(2)


def test_the_fingerprint_knows_the_topic_and_not_the_broker():
    def of(**changes: object) -> str:
        connector = replace(Connector("kafka", topics=("orders",), value_format=Format("json")), **changes)  # type: ignore[arg-type]
        return compile_job(
            job(sink(total(scan(replace(ORDERS, connector=connector)), ("user",), "amount"), OUT))
        ).fingerprint

    assert of() == of(properties={"bootstrap.servers": "elsewhere:9092"})
    assert of() != of(topics=("others",))


PIPELINES = sorted((Path(__file__).parents[1] / "pipelines").glob("*/pipeline.sql"))


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.parent.name)
def test_state_is_the_same_whether_late_rows_are_shown_or_not(file: Path):
    for each in load(file, {}).jobs:
        counted, shown = (compile_job(each, late_rows=late).operators for late in (False, True))
        assert {o.identity for o in counted if o.kernel.traces()} == {o.identity for o in shown if o.kernel.traces()}
