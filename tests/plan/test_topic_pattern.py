"""Patterns of topics: what Java's regular expressions match, and which of them are refused."""

from __future__ import annotations

import pytest

from service.plan.topic_pattern import topic_pattern

NAMES = ("orders", "orders.eu", "ordersX", "ORDERS", "a-1", "b-22", "a.b", "a.bb", "aXb", "aab", "x-dlq")

# What `Pattern.compile(pattern).matcher(name).matches()` says of NAMES in Java 17.
MATCHES = {
    r"orders.*": "orders orders.eu ordersX",
    r"orders\..*": "orders.eu",
    r"^(?!orders|x).*$": "ORDERS a-1 b-22 a.b a.bb aXb aab",
    r".*(?<!-dlq)": "orders orders.eu ordersX ORDERS a-1 b-22 a.b a.bb aXb aab",
    r"(a|b)-\d+": "a-1 b-22",
    r"\Qa.b\E+": "a.b a.bb",
    r"(?i)ORDERS": "orders ORDERS",
    r"\p{Lower}+": "orders aab",
    r"\P{Lower}+": "ORDERS",
    r"[\p{Upper}\d-]+": "ORDERS",
    r"(?<x>a)\k<x>b": "aab",
    r"(\w)\1b": "aab",
    r"a{2}b": "aab",
    r"[a.b|~]+": "a.b a.bb aab",
    r"[(a{2}b]+": "aab",
    r"a++b\z": "aab",
    r"rders": "",
}


@pytest.mark.parametrize("pattern", MATCHES)
def test_a_pattern_matches_the_whole_names_that_it_matches_in_java(pattern: str):
    compiled = topic_pattern(pattern)
    assert " ".join(name for name in NAMES if compiled.fullmatch(name)) == MATCHES[pattern]


@pytest.mark.parametrize(
    "pattern",
    [
        *("(a", "a)", "a**", "*a", "a{", "a{,2}", "(?x)a", "a(?i)b", "a\\"),
        *(r"\y", r"\h", r"\07", r"\11", r"\p{Greek}"),
        *("[a[b]]", "[a&&b]", "[]a]", r"[\b]", r"[\1]", r"[\P{Lower}]"),
    ],
)
def test_what_java_refuses_or_reads_otherwise_is_refused(pattern: str):
    with pytest.raises(ValueError, match=r"."):
        topic_pattern(pattern)
