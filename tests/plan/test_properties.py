"""What follows from a plan: which relations take rows back, their unique keys, their event time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.plan.nodes import Cumulate, Hop, JoinKind, Mode, Node, Normalize, Union
from service.plan.properties import event_time, mode, unique_keys
from service.plan.walk import fields
from tests.plan.build import ORDERS, USERS, joined, more, number, plus, project, scan, total, tumbled, where
from tests.plan.build import column as col

orders = scan(ORDERS)
users = scan(USERS)
by_user = total(orders, ("user",), "amount")
windows = tumbled(orders, ("user",), "amount")


def named_keys(node: Node) -> list[str]:
    return [" ".join(fields(node)[c].name for c in sorted(k)) for k in unique_keys(node)]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (orders, Mode.APPEND),
        (users, Mode.RETRACT),
        (by_user, Mode.RETRACT),
        (windows, Mode.APPEND),
        (where(by_user, more(col(by_user, "total"), number(5))), Mode.RETRACT),
        (joined(orders, orders, ("user", "user")), Mode.APPEND),
        (joined(orders, orders, ("user", "user"), JoinKind.LEFT), Mode.RETRACT),
        (joined(orders, orders, ("user", "user"), JoinKind.SEMI), Mode.APPEND),
        (joined(orders, users, ("user", "id")), Mode.RETRACT),
        (Union(inputs=(orders, orders), fields=orders.fields), Mode.APPEND),
    ],
)
def test_a_relation_retracts_when_an_answer_may_change(node: Node, expected: Mode) -> None:
    assert mode(node) is expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (orders, []),
        (users, ["id"]),
        (by_user, ["user"]),
        (total(orders, (), "amount"), [""]),
        (windows, ["user window_end", "user window_time", "user window_start"]),
        (Normalize(input=orders, key=(0, 1)), ["user amount"]),
        (project(by_user, u="user", t="total"), ["u"]),
        (project(by_user, u="user", again="user"), ["u", "again"]),
        (project(by_user, t="total"), []),
        (project(by_user, u=plus(col(by_user, "total"), number(1))), []),
        (joined(orders, users, ("user", "id")), []),
        (joined(by_user, users, ("user", "id")), ["user", "id"]),
        (joined(by_user, users, ("user", "id"), JoinKind.LEFT), ["user"]),
        (joined(by_user, users, ("user", "city"), JoinKind.LEFT), ["user id"]),
        (joined(by_user, users, ("user", "city"), JoinKind.FULL), []),
        (Union(inputs=(by_user, by_user), fields=by_user.fields), []),
    ],
)
def test_unique_keys_follow_from_groups_and_joins(node: Node, expected: list[str]) -> None:
    assert named_keys(node) == expected


def test_windows_that_overlap_still_have_one_end_each() -> None:
    ends = ["user window_end", "user window_time"]
    assert named_keys(replace(windows, window=Hop(10_000, 5_000))) == [*ends, "user window_start"]
    assert named_keys(replace(windows, window=Cumulate(10_000, 5_000))) == ends


def test_a_projected_time_attribute_is_still_one_and_a_computed_one_is_not() -> None:
    assert event_time(project(orders, a="amount", t="ts")) == 1
    assert event_time(by_user) is None
    assert event_time(windows) == 4
    assert event_time(project(orders, t=plus(col(orders, "amount"), number(1)))) is None
