"""Which state goes to executors that join: an even share, and no more than it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.spark.supervision.rebalance import StateStore, moves


def placed(*steps: str) -> dict[StateStore, str]:
    """The stores of each step by where they are: "aab" are three partitions, two of them on executor a."""
    return {StateStore(step, number): place for step, where in enumerate(steps) for number, place in enumerate(where)}


def held(places: Mapping[StateStore, str]) -> Counter[tuple[int, str]]:
    return Counter((store.operator, place) for store, place in places.items())


@pytest.mark.parametrize(
    ("places", "executors", "after"),
    [
        (placed("aaaaaa"), "abc", ["aabbcc"]),
        (placed("aabb"), "ac", ["aacc"]),
        (placed("aabbab"), "abc", ["aabbcc"]),
        (placed("bb", "a"), "abc", ["bc", "a"]),
        (placed("aaaa", "aaaa"), "abc", ["aabc", "aabc"]),
        (placed("a"), "ab", ["a"]),
        (placed("xxxx"), "ab", ["aabb"]),
        (placed("aab", "abb"), "ab", ["aab", "abb"]),
        ({}, "ab", []),
    ],
    ids=[
        *("two join one", "one takes the place of another", "one joins two", "who has least of the other steps"),
        *(
            "fewer partitions than shares",
            "more executors than partitions",
            "all are gone",
            "nothing to do",
            "no state",
        ),
    ],
)
def test_state_is_spread_like_this(places: dict[StateStore, str], executors: str, after: list[str]):
    found = {**places, **moves(places, list(executors))}
    shares = [{e: n for (step, e), n in held(found).items() if step == number} for number in range(len(after))]
    assert [Counter(share) for share in shares] == [Counter(step) for step in after]


PLACES = st.dictionaries(
    st.builds(StateStore, st.integers(0, 2), st.integers(0, 11)), st.sampled_from("abcdefxyz"), max_size=30
)


@given(places=PLACES, executors=st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
def test_no_executor_has_two_more_than_another_and_no_move_is_in_vain(
    places: dict[StateStore, str], executors: list[str]
):
    moved = moves(places, executors)
    before, after = held(places), held({**places, **moved})
    assert set(moved) <= set(places)
    for step in {store.operator for store in places}:
        shares = [after[step, executor] for executor in executors]
        assert max(shares) - min(shares) <= 1
        assert sum(shares) == sum(store.operator == step for store in places)
        # What moves is what was on nobody, and what made somebody's share too large.
        least = sum(max(0, before[step, e] - after[step, e]) for e in {*executors, *places.values()})
        assert sum(store.operator == step for store in moved) == least
    assert not moves({**places, **moved}, executors)
