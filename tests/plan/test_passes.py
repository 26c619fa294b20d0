"""Each pass changes a plan as it says, and normalizing has nothing left to do at the end."""

from __future__ import annotations

from dataclasses import replace

from service.plan.expression_text import describe
from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import Aggregate, Filter, Join, JoinKind, Node, Place, Project, Scan, Union
from service.plan.passes import normalize
from service.plan.passes.absorb_projections import absorb_projections
from service.plan.passes.expand_computed import expand_computed
from service.plan.passes.merge_projections import merge_projections
from service.plan.passes.prune_columns import prune_columns
from service.plan.passes.prune_fields import prune_fields
from service.plan.passes.prune_watermarks import prune_watermarks
from service.plan.passes.push_filters import push_filters
from service.plan.passes.share_subplans import share_subplans
from service.plan.table import ColumnKind, TableColumn
from service.plan.types import BIGINT, BOOLEAN, STRING, DataType, Row
from service.plan.walk import fields, in_order
from tests.plan.build import (
    ORDERS,
    OUT,
    TIME,
    USERS,
    both,
    column,
    job,
    joined,
    more,
    number,
    plus,
    project,
    scan,
    sink,
    total,
    tumbled,
    where,
)

orders = scan(ORDERS)
users = scan(USERS)


def names(node: Node) -> list[str]:
    return [f.name for f in fields(node)]


def only(kind: type, *nodes: Node) -> list[Node]:
    return [n for n in in_order(nodes) if isinstance(n, kind)]


def test_two_projections_become_one():
    inner = project(orders, twice=plus(column(orders, "amount"), column(orders, "amount")), user="user")
    outer = project(inner, a="user", b=plus(column(inner, "twice"), number(1)))
    merged = merge_projections(job(sink(outer, OUT))).sinks[0].input
    assert isinstance(merged, Project)
    assert [describe(e) for e in merged.expressions] == ["user", "((amount + amount) + 1)"]
    assert isinstance(merged.input, Scan)


def test_an_input_of_a_join_that_nobody_reads_keeps_its_rows_by_a_constant():
    crossed = replace(joined(scan(USERS), users, ("id", "id")), left_keys=(), right_keys=(), null_safe=())
    second = Column(len(fields(users)), STRING, "id")
    found = prune_columns(job(sink(project(crossed, a=second, b=number(1)), OUT)))
    (join,) = only(Join, found.sinks[0].input)
    assert isinstance(join, Join)
    assert isinstance(join.left, Project)
    assert [describe(e) for e in join.left.expressions] == ["TRUE"]
    assert names(join) == ["", "id"]


def test_a_random_value_is_not_computed_twice():
    rand = Call("RAND", (), BIGINT, "random()", deterministic=False)
    inner = project(orders, r=rand, user="user")
    outer = project(inner, a="user", b=plus(column(inner, "r"), column(inner, "r")))
    kept = merge_projections(job(sink(outer, OUT))).sinks[0].input
    assert isinstance(kept, Project)
    assert isinstance(kept.input, Project)


def test_a_projection_that_others_read_too_stays():
    view = project(orders, a="user", b=plus(column(orders, "amount"), number(1)))
    first, second = project(view, a="a", b="b"), project(view, a="a", b=plus(column(view, "b"), number(2)))
    merged = merge_projections(job(sink(first, OUT), sink(second, OUT)))
    assert merged.sinks[0].input is view
    assert second.input is view


def test_a_projection_that_changes_nothing_disappears():
    assert (
        merge_projections(job(sink(project(orders, u="user", b="amount", t="ts", n="note"), OUT))).sinks[0].input
        is orders
    )


def test_a_filter_moves_below_a_projection_with_its_columns_replaced():
    named = project(orders, a="user", b=plus(column(orders, "amount"), number(1)))
    pushed = push_filters(job(sink(where(named, more(column(named, "b"), number(5))), OUT))).sinks[0].input
    assert isinstance(pushed, Project)
    assert isinstance(pushed.input, Filter)
    assert describe(pushed.input.condition) == "((amount + 1) > 5)"


def test_a_condition_on_the_keys_of_a_group_drops_its_rows_and_one_on_its_totals_does_not():
    groups = total(orders, ("amount",), "amount")
    condition = both(more(column(groups, "amount"), number(1)), more(column(groups, "total"), number(2)))
    above = push_filters(job(sink(where(groups, condition), OUT))).sinks[0].input
    assert isinstance(above, Filter)
    assert describe(above.condition) == "(total > 2)"
    assert isinstance(above.input, Aggregate)
    assert isinstance(above.input.input, Filter)
    assert describe(above.input.input.condition) == "(amount > 1)"


def test_a_left_join_lets_conditions_on_its_left_side_pass_only():
    pair = joined(orders, users, ("user", "id"), JoinKind.LEFT)
    condition = both(more(column(pair, "amount"), number(1)), more(column(pair, "city"), column(pair, "id")))
    above = push_filters(job(sink(where(pair, condition), OUT))).sinks[0].input
    assert isinstance(above, Filter)
    assert describe(above.condition) == "(city > id)"
    assert isinstance(above.input, Join)
    assert isinstance(above.input.left, Filter)
    assert above.input.right is users


def test_an_inner_join_lets_both_sides_have_their_conditions():
    pair = joined(orders, users, ("user", "id"))
    condition = both(more(column(pair, "amount"), number(1)), more(column(pair, "city"), column(pair, "id")))
    join = push_filters(job(sink(where(pair, condition), OUT))).sinks[0].input
    assert isinstance(join, Join)
    assert isinstance(join.right, Filter)
    assert describe(join.right.condition) == "(city > id)"
    assert isinstance(join.left, Filter)
    assert describe(join.left.condition) == "(amount > 1)"


def test_a_filter_goes_into_every_input_of_a_union():
    both_inputs = Union(inputs=(orders, orders), fields=orders.fields)
    pushed = (
        push_filters(job(sink(where(both_inputs, more(column(both_inputs, "amount"), number(1))), OUT))).sinks[0].input
    )
    assert isinstance(pushed, Union)
    assert all(isinstance(i, Filter) for i in pushed.inputs)


def test_a_filter_stops_above_what_another_sink_reads():
    view = total(orders, ("user",), "amount")
    filtered = where(view, more(column(view, "user"), column(view, "user")))
    pushed = push_filters(job(sink(filtered, OUT), sink(view, OUT)))
    assert pushed.sinks[0].input is filtered


def test_a_scan_reads_only_what_is_used_and_what_its_watermark_needs():
    narrow = project(orders, a="user", b="amount")
    pruned = prune_columns(job(sink(narrow, OUT))).sinks[0].input
    assert names(only(Scan, pruned)[0]) == ["user", "amount", "ts"]


def test_totals_that_nobody_reads_are_not_computed():
    groups = total(orders, ("user",), "amount")
    two = replace(
        groups, aggregates=groups.aggregates * 2, fields=(*groups.fields, replace(groups.fields[1], name="b"))
    )
    pruned = prune_columns(job(sink(project(two, a="user", b="b"), OUT))).sinks[0].input
    aggregate = only(Aggregate, pruned)[0]
    assert names(aggregate) == ["user", "b"]
    assert isinstance(aggregate, Aggregate)
    assert len(aggregate.aggregates) == 1


def test_a_shared_view_keeps_what_any_reader_needs_and_stays_one():
    view = joined(orders, users, ("user", "id"))
    one, two = project(view, a="user", b="amount"), project(view, a="city", b="amount")
    pruned = prune_columns(job(sink(one, OUT), sink(two, OUT)))
    joins = only(Join, *(s.input for s in pruned.sinks))
    assert len(joins) == 1
    assert names(joins[0]) == ["user", "amount", "ts", "id", "city"]


def test_pruning_keeps_the_keys_and_the_time_of_a_window():
    windows = tumbled(orders, ("user",), "amount")
    pruned = prune_columns(job(sink(project(windows, a="user", b="total"), OUT))).sinks[0].input
    assert names(only(Scan, pruned)[0]) == ["user", "amount", "ts"]


def test_equal_sub_plans_become_one_wherever_they_were_written():
    again = replace(scan(ORDERS), place=Place(7, 1))
    shared = share_subplans(
        job(sink(total(orders, ("user",), "amount"), OUT), sink(total(again, ("user",), "amount"), OUT))
    )
    assert shared.sinks[0].input is shared.sinks[1].input


def test_a_computed_column_becomes_a_projection_over_what_it_reads():
    computed = TableColumn("twice", BIGINT, ColumnKind.COMPUTED, expression=plus(column(orders, "amount"), number(1)))
    wide = replace(ORDERS, columns=(*ORDERS.columns, computed))
    expanded = expand_computed(job(sink(project(scan(wide), a="user", b="twice"), OUT))).sinks[0].input
    scanned = only(Scan, expanded)[0]
    assert "twice" not in names(scanned)
    assert [describe(e) for e in only(Project, expanded)[0].expressions][-1] == "(amount + 1)"  # type: ignore[union-attr]


def test_normalizing_twice_changes_nothing_more():
    pair = joined(project(orders, user="user", n=plus(column(orders, "amount"), number(1))), users, ("user", "id"))
    once = normalize(job(sink(project(where(pair, more(column(pair, "n"), number(1))), a="city", b="n"), OUT)))
    assert normalize(once) == once


def test_an_aggregate_reads_its_columns_where_they_are():
    picked = project(orders, a="amount", u="user")
    absorbed = absorb_projections(job(sink(total(picked, ("u",), "a"), OUT))).sinks[0].input
    assert isinstance(absorbed, Aggregate)
    assert absorbed.input is orders
    assert absorbed.keys == (0,)
    assert absorbed.aggregates[0].arguments == (1,)


def test_sub_plans_that_are_made_and_dropped_on_the_way_are_not_mistaken_for_others():
    views = [where(total(scan(ORDERS), ("user",), "amount"), more(number(n), number(0))) for n in range(50)]
    shared = share_subplans(job(*(sink(view, OUT) for view in views)))
    conditions = [s.input.condition for s in shared.sinks if isinstance(s.input, Filter)]
    assert [describe(c) for c in conditions] == [f"({n} > 0)" for n in range(50)]
    assert len({id(s.input.input) for s in shared.sinks if isinstance(s.input, Filter)}) == 1


def test_what_a_sink_enforces_is_asked_of_the_rows_that_reach_it():
    pair = joined(orders, users, ("user", "id"))
    enforced = Call("NOT NULL", (column(pair, "user"),), BOOLEAN, "({0} IS NOT NULL OR error('no'))")
    kept = push_filters(job(sink(where(pair, enforced), OUT))).sinks[0].input
    assert isinstance(kept, Filter)
    assert kept.input is pair


def test_a_watermark_that_no_step_waits_for_is_forgotten():
    def watermark(node: Node) -> object:
        (scanned,) = only(Scan, prune_watermarks(job(sink(node, OUT))).sinks[0].input)
        assert isinstance(scanned, Scan)
        return scanned.table.watermark

    assert watermark(total(orders, ("user",), "amount")) is None
    assert watermark(tumbled(orders, ("user",), "amount")) == ORDERS.watermark


def test_a_watermark_that_one_of_two_readers_waits_for_stays():
    windows, groups = tumbled(orders, ("user",), "amount"), total(orders, ("user",), "amount")
    kept = prune_watermarks(job(sink(windows, OUT), sink(groups, OUT)))
    scans = only(Scan, *(s.input for s in kept.sinks))
    assert len(scans) == 1
    assert scans[0] is orders


PERSON = Row(("id", "name", "home"), (BIGINT, STRING, Row(("city", "street"), (STRING, STRING))))
EVENTS = replace(
    ORDERS,
    columns=(TableColumn("kind", BIGINT), TableColumn("person", PERSON), TableColumn("ts", TIME)),
    rowtime=None,
    watermark=None,
)


def taken(row: Expression, name: str) -> Call:
    assert isinstance(row.type, Row)
    return Call(f".{name}", (row,), row.type.types[row.type.names.index(name)], f"struct_extract({{0}}, '{name}')")


def row_types(node: Node) -> list[DataType]:
    """The types of the ROW columns of the scans below `node`, as the scan and as its table has them."""
    (found,) = only(Scan, node)
    assert isinstance(found, Scan)
    assert [f.type for f in found.fields] == [found.table.columns[i].type for i in found.columns]
    return [f.type for f in found.fields if isinstance(f.type, Row)]


def test_a_scan_reads_only_the_fields_of_a_row_that_are_taken_out_of_it():
    events = scan(EVENTS)
    person = column(events, "person")
    read = project(events, a=taken(taken(person, "home"), "city"), b="kind")
    pruned = prune_fields(job(sink(read, OUT))).sinks[0].input
    assert row_types(pruned) == [Row(("home",), (Row(("city",), (STRING,)),))]
    assert isinstance(pruned, Project)
    assert describe(pruned.expressions[0]) == "person.home.city"


def test_a_condition_reads_its_fields_and_a_projection_hands_a_row_on():
    events = scan(EVENTS)
    kept = Filter(
        input=events, condition=Call("=", (taken(column(events, "person"), "id"), number(1)), BOOLEAN, "{0} = {1}")
    )
    handed = project(kept, who="person", kind="kind")
    read = project(handed, a=taken(column(handed, "who"), "name"), b="kind")
    pruned = prune_fields(job(sink(read, OUT))).sinks[0].input
    narrow = Row(("id", "name"), (BIGINT, STRING))
    assert row_types(pruned) == [narrow]
    assert [f.type for f in fields(pruned.input)] == [narrow, BIGINT]  # type: ignore[union-attr]


def test_a_row_that_is_read_as_a_whole_keeps_its_fields():
    events = scan(EVENTS)
    person = column(events, "person")
    absent = Call("IS NULL", (person,), BOOLEAN, "{0} IS NULL")
    unchanged = job(sink(project(events, a=taken(person, "name"), b=absent), OUT))
    assert prune_fields(unchanged) is unchanged


def test_the_fields_that_a_watermark_is_computed_from_stay():
    moment = Row(("at", "note"), (TIME, STRING))
    timed = replace(
        EVENTS,
        columns=(TableColumn("kind", BIGINT), TableColumn("made", moment)),
        watermark=taken(Column(1, moment, "made"), "at"),
    )
    events = scan(timed)
    pruned = prune_fields(job(sink(project(events, a="kind", b="kind"), OUT))).sinks[0].input
    assert row_types(pruned) == [Row(("at",), (TIME,))]
