"""What a plan may not do is reported with its place, its reason and a way out; `explain` shows the rest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from service.plan.explain import as_text, explain
from service.plan.expressions import Call
from service.plan.nodes import Field, Frame, Job, Over, OverCall, Place, TopN, Tumble, WindowRows
from service.plan.properties import unique_keys
from service.plan.table import Format, TimeKind
from service.plan.types import BIGINT, Timestamp
from service.plan.validate.cautions import warnings
from service.plan.validate.check import check, problems
from service.plan.validate.problem import PlanErrors
from tests.plan.build import ORDERS, OUT, USERS, job, joined, project, scan, sink, table, total, tumbled

orders = scan(ORDERS)
users = scan(USERS)
by_user = total(orders, ("user",), "amount")


def problems_of(job: Job) -> list[str]:
    return [f"{p.primary} | {p.detail} | {p.hint}" for p in problems(job)]


def test_a_format_that_only_appends_refuses_an_answer_that_changes():
    plain = table("plain", "user s", "total n")
    assert problems_of(job(sink(by_user, plain))) == [
        'table "plain" takes new rows only, but the query updates its answer'
        " | format 'json' cannot say that a row was changed; GROUP BY user changes rows"
        " | use 'connector' = 'upsert-kafka' with a PRIMARY KEY, or 'format' = 'debezium-json'"
    ]


def test_a_window_in_processing_time_refuses_retracted_rows():
    pair = joined(orders, users, ("user", "id"))
    timed = replace(pair, fields=tuple(replace(f, time=TimeKind.PROCESSING) for f in pair.fields))
    windows = tumbled(timed, ("user",), "amount")
    assert problems_of(job(sink(project(windows, a="user", b="total"), OUT))) == [
        "a window aggregate in processing time cannot read an updating input"
        ' | "ts" says when a change arrives; table "users" updates and deletes rows'
        " | use a window in event time"
    ]


def test_over_takes_retracted_rows_in_event_time_alone_and_tells_none_apart_by_their_key():
    call = OverCall("ROW_NUMBER", (), BIGINT, Frame(rows=True, preceding=None))
    fields = (*users.fields, Field("n", BIGINT))
    for time, expected in ((TimeKind.EVENT, 0), (TimeKind.PROCESSING, 1)):
        below = replace(users, fields=tuple(replace(f, time=time) for f in users.fields))
        found = Over(input=below, partition=(), time=0, calls=(call,), fields=fields)
        refused = [p for p in problems_of(job(sink(found, OUT))) if "an over in processing time cannot read" in p]
        assert len(refused) == expected
        assert unique_keys(found) == ()


def test_rows_of_a_window_that_may_be_retracted_are_distinguished_by_their_key_and_its_time():
    bounds = tuple(Field(name, Timestamp(3)) for name in ("window_start", "window_end", "window_time"))
    windowed = WindowRows(input=users, time=1, window=Tumble(10), fields=(*users.fields, *bounds))
    assert unique_keys(windowed) == (frozenset({0}),)
    top = TopN(input=windowed, partition=(2, 3), order=(), fields=windowed.fields, last=2, window_time=4, shown=False)
    assert unique_keys(top) == (frozenset({0, 4}),)


def test_a_window_refuses_a_column_that_is_no_time_attribute():
    plain = project(orders, user="user", amount="amount", ts="ts")
    unmarked = replace(plain, fields=tuple(replace(f, time=orders.fields[0].time) for f in plain.fields))
    (only,) = problems_of(job(sink(project(tumbled(unmarked, ("user",), "amount"), a="user", b="total"), OUT)))
    assert only.startswith('column "ts" is not a time attribute here')


def test_upsert_kafka_needs_a_primary_key():
    keyless = table("latest", "user s", "total n", kind="upsert-kafka")
    assert [p.primary for p in problems(job(sink(by_user, keyless)))] == ['table "latest" needs a PRIMARY KEY']


def test_a_schema_in_each_record_is_for_reading():
    form = Format("debezium-json", {"schema-include": "true"})
    wrapped = replace(OUT, connector=replace(OUT.connector, value_format=form))
    assert problems_of(job(sink(by_user, wrapped))) == [
        'table "out" cannot be written with a schema in each record'
        " | 'debezium-json.schema-include' is for reading | leave it out"
    ]


def test_all_problems_are_reported_at_once():
    plain = table("plain", "user s", "total n")
    other = replace(plain, name="other")
    with pytest.raises(PlanErrors) as caught:
        check(job(sink(by_user, plain), sink(by_user, other)))
    assert len(caught.value.problems) == 2


def test_a_state_without_a_bound_is_a_warning_with_its_place():
    (warning,) = warnings(job(sink(replace(by_user, place=Place(3, 8)), OUT)))
    assert warning.primary == "the state of this aggregate has no bound: it keeps the totals of each (user) forever"
    assert warning.place == Place(3, 8)


def test_a_ttl_and_a_window_are_bounds():
    windows = project(tumbled(orders, ("user",), "amount"), a="user", b="total")
    assert warnings(job(sink(total(orders, ("user",), "amount", ttl=60_000), OUT))) == ()
    assert warnings(job(sink(windows, table("w", "a s", "b n")))) == ()


def test_a_primary_key_that_the_query_does_not_prove_is_a_warning():
    by_total = table("by_total", "user s", "total n", key=("total",), fmt="debezium-json")
    groups = total(orders, ("user",), "amount", ttl=1)
    (warning,) = warnings(job(sink(groups, by_total)))
    assert warning.primary == 'the query does not prove that the primary key of "by_total" is unique'
    assert warning.detail == (
        "its rows are kept forever, to show the last of each key; unique keys of the query: (user)"
    )


def test_explain_draws_modes_keys_state_and_levels():
    pair = joined(orders, users, ("user", "id"))
    groups = total(pair, ("id",), "amount", ttl=3_600_000)
    lines = as_text(explain(job(sink(groups, OUT))), "pipeline.sql").splitlines()[2:]
    assert [re.sub("-[0-9a-f]{6}$", "-ID", line) for line in lines] == [
        "sink out: kafka, debezium-json, retract, primary key (a)",
        "└─ aggregate by (id): SUM(amount), ttl 1 h",
        "   │  retract; key (id)",
        "   │  keeps the totals of each (id), until ttl 1 h after the last write",
        "   └─ inner join on user = id",
        "      │  retract",
        "      │  keeps left rows by (user), without a bound",
        "      │  keeps the right row of each (id), without a bound",
        "      ├─ scan orders (user, amount)",
        "      │     append",
        "      └─ scan users (id)",
        "            retract; key (id)",
        "",
        "levels",
        "  0  orders, users",
        "  1  join_1, group_partial_1, group_by_1, consolidate_1",
        "     exchange orders to join_1 by (user)",
        "     exchange users to join_1 by (id)",
        "     state of join_1: join-ID",
        "     state of group_by_1: group_by-ID",
        "",
        "warnings",
        "  pipeline.sql:0:0: the state of this join has no bound: it keeps left rows by (user) forever",
        "    hint: set 'table.exec.state.ttl', or give a STATE_TTL hint, if old rows may be forgotten",
        "  pipeline.sql:0:0: the state of this join has no bound: it keeps the right row of each (id) forever",
        "    hint: set 'table.exec.state.ttl', or give a STATE_TTL hint, if old rows may be forgotten",
    ]


def test_explain_shows_a_shared_step_once():
    text = as_text(explain(job(sink(by_user, OUT), sink(by_user, replace(OUT, name="other")))), "pipeline.sql")
    assert text.count("aggregate by (user)") == 1
    assert "└─ [2] as above" in text


def test_explain_for_programs_holds_the_same_facts():
    shown = explain(job(sink(by_user, OUT))).to_json()
    assert shown["steps"][1]["state"] == [{"keeps": "the totals of each (user)", "bound": None}]
    assert shown["levels"][1]["exchanges"] == ["group_partial_1 to group_by_1 by (user)"]


NOW = Call("NOW", (), BIGINT, "epoch_ms($now)")
RAND = Call("RAND", (), BIGINT, "random()", deterministic=False)


def test_a_processing_time_of_retracted_rows_is_named():
    cdc = table("cdc", "user s", fmt="debezium-json")
    (only,) = problems_of(
        job(sink(project(scan(cdc), user="user", at=NOW), table("out", "user s", "at n", fmt="debezium-json")))
    )
    assert only == (
        '"at", which is NOW(), would have another value when its row is retracted'
        ' | table "cdc" updates and deletes rows | leave it out, or take a time that the records carry'
    )


@pytest.mark.parametrize("value", [NOW, RAND])
def test_a_value_that_changes_cannot_be_computed_of_retracted_rows(value: Call):
    (only,) = problems_of(job(sink(project(by_user, a="user", b=value), OUT)))
    assert only == (
        f'"b", which is {value.name}(), would have another value when its row is retracted'
        " | GROUP BY user updates and deletes rows | compute it where rows enter, before that step"
    )
    assert problems_of(job(sink(total(project(orders, user="user", n=value), ("user",), "n"), OUT))) == []


def test_explain_shows_what_a_sink_keeps():
    by_total = table("by_total", "user s", "total n", key=("total",), fmt="debezium-json")
    assert as_text(explain(job(sink(by_user, by_total))), "pipeline.sql").splitlines()[2:5] == [
        "sink by_total: kafka, debezium-json, retract, primary key (total)",
        "│  keeps all rows by the primary key, without a bound",
        "└─ aggregate by (user): SUM(amount)",
    ]
