"""Nodes of a plan check themselves: one that is not what its class says cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from operators.joins.kinds import JoinKind
from service.plan.nodes import (
    AggregateCall,
    CountShape,
    IntervalJoin,
    LookupJoin,
    Normalize,
    OrderBy,
    Project,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    WindowJoin,
)
from service.plan.types import BIGINT
from service.plan.walk import fields
from tests.plan.build import ORDERS, USERS, scan, total

orders, users = scan(ORDERS), scan(USERS)
Said = dict[str, Any]
"""What is said of a node, by the names of its class."""

both: Said = {"left": orders, "right": users, "kind": JoinKind.LEFT, "left_keys": (0,), "right_keys": (0,)}
both |= {"residual": None, "fields": (*orders.fields, *users.fields)}
timed: Said = both | {"left_time": 2, "right_time": 1}
by_time = OrderBy(column=2)
count = AggregateCall("COUNT", (), BIGINT)
of_window = orders.fields[:3]
counted: Said = {"input": orders, "shape": CountShape(3, 3), "conditions": (), "seen": None}

NODES: dict[str, tuple[Callable[..., Any], Said]] = {
    "interval join": (IntervalJoin, timed | {"null_safe": (False,), "lower": -5, "upper": 5}),
    "window join": (WindowJoin, timed | {"null_safe": (False,)}),
    "temporal join": (TemporalJoin, timed),
    "lookup join": (LookupJoin, both),
    "time sort": (TimeSort, {"input": orders, "order": (by_time, OrderBy(column=0))}),
    "groups of a stream window": (
        StreamWindow,
        counted
        | {"time": None, "partition": (), "keys": (0,), "aggregates": (count,)}
        | {"fields": (*orders.fields[:2], *of_window)},
    ),
    "rows of a stream window": (
        StreamWindow,
        counted
        | {"time": 2, "partition": (0,), "keys": None, "aggregates": ()}
        | {"fields": (*orders.fields, *of_window)},
    ),
}
"""Nodes that are what they say."""

ILL: list[tuple[str, Said, str]] = [
    ("interval join", {"left_time": 4}, "a IntervalJoin reads columns of its input, which has 4"),
    ("interval join", {"right_time": 2}, "a IntervalJoin reads columns of its input, which has 2"),
    ("interval join", {"lower": 6}, "a lower bound that is not above the upper one"),
    ("window join", {"left_keys": (9,)}, "a WindowJoin reads columns of its input, which has 4"),
    ("window join", {"left_time": 4}, "a WindowJoin reads columns of its input, which has 4"),
    ("window join", {"right_time": -1}, "a WindowJoin reads columns of its input, which has 2"),
    ("window join", {"null_safe": ()}, "as many keys on the left as on the right"),
    ("window join", {"fields": orders.fields}, "a WindowJoin has the columns of its inputs"),
    ("window join", {"kind": JoinKind.SEMI}, "a WindowJoin has the columns of its inputs"),
    ("temporal join", {"right_keys": (0, 1)}, "as many keys on the left as on the right"),
    ("temporal join", {"right_keys": (2,)}, "a TemporalJoin reads columns of its input, which has 2"),
    ("temporal join", {"left_time": 4}, "a TemporalJoin reads columns of its input, which has 4"),
    ("temporal join", {"right_time": 2}, "a TemporalJoin reads columns of its input, which has 2"),
    ("temporal join", {"kind": JoinKind.FULL}, "a TemporalJoin is INNER or LEFT"),
    ("temporal join", {"fields": users.fields}, "a TemporalJoin has the columns of its inputs"),
    ("temporal join", {"waits": True}, "a TemporalJoin waits in processing time only"),
    ("lookup join", {"left_keys": (), "right_keys": ()}, "a LookupJoin has a key to look up"),
    ("lookup join", {"left_keys": (4,)}, "a LookupJoin reads columns of its input, which has 4"),
    ("lookup join", {"right_keys": (2,)}, "a LookupJoin reads columns of its input, which has 2"),
    ("lookup join", {"left_keys": (0, 1)}, "as many keys on the left as on the right"),
    ("lookup join", {"fields": orders.fields}, "a LookupJoin has the columns of its inputs"),
    ("lookup join", {"kind": JoinKind.RIGHT}, "a LookupJoin is INNER or LEFT"),
    ("lookup join", {"right": total(orders, ("user",), "amount")}, "a LookupJoin looks rows up in a table"),
    ("time sort", {"order": (OrderBy(column=4),)}, "a TimeSort reads columns of its input, which has 4"),
    ("time sort", {"order": ()}, "a TimeSort begins with a time attribute, ascending"),
    ("time sort", {"order": (replace(by_time, descending=True),)}, "begins with a time attribute, ascending"),
    ("groups of a stream window", {"keys": (4,)}, "a StreamWindow reads columns of its input, which has 4"),
    ("groups of a stream window", {"time": 4}, "a StreamWindow reads columns of its input, which has 4"),
    ("groups of a stream window", {"seen": 4}, "a StreamWindow reads columns of its input, which has 4"),
    ("groups of a stream window", {"conditions": (4,)}, "a StreamWindow reads columns of its input, which has 4"),
    ("groups of a stream window", {"aggregates": ()}, "a StreamWindow has its rows, or keys and aggregates"),
    ("rows of a stream window", {"partition": (4,)}, "a StreamWindow reads columns of its input, which has 4"),
    ("rows of a stream window", {"fields": orders.fields}, "a StreamWindow has its rows, or keys and aggregates"),
    ("rows of a stream window", {"aggregates": (count,)}, "a StreamWindow has its rows, or keys and aggregates"),
]


@pytest.mark.parametrize("name", NODES)
def test_a_node_that_is_what_it_says_can_be_made(name: str):
    kind, message = NODES[name]
    assert kind(**message).place.line == 0


@pytest.mark.parametrize(("name", "new", "claim"), ILL)
def test_a_node_that_is_not_what_it_says_cannot(name: str, new: Said, claim: str):
    kind, message = NODES[name]
    with pytest.raises(ValueError, match=claim):
        kind(**message | new)


def test_nodes_of_one_input_know_how_wide_it_is():
    with pytest.raises(ValueError, match="a Project has one expression a field"):
        Project(input=orders, expressions=(), fields=fields(orders))
    with pytest.raises(ValueError, match="a Normalize reads columns of its input, which has 4"):
        Normalize(input=orders, key=(4,))
