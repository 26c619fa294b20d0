"""Every expression that Flink has answered is answered alike, or stands in the list of differences with its reason."""

from __future__ import annotations

import math

import pytest

from tests.sql.flink_oracle import DIFFERENCES, FAILS, REFUSED, Case, cases, ours

DIFFERENT = {name for names in DIFFERENCES.values() for name in names}


def shown(type_: str) -> str:
    """A type as Flink's plans show it."""
    return (
        type_.replace("TIMESTAMP_LTZ", "TIMESTAMP")
        .replace(" WITH LOCAL TIME ZONE", "")
        .replace(" NOT NULL", "")
        .replace("STRING", "VARCHAR(2147483647)")
        .replace("BYTES", "VARBINARY(2147483647)")
    )


def equal(mine: str | None, theirs: str | None, type_: str) -> bool:
    """Whether two answers agree; the last digits of DOUBLE belong to the mathematical library of the machine."""
    if mine == theirs or None in (mine, theirs) or FAILS in (mine, theirs) or type_ != "DOUBLE":
        return mine == theirs
    return math.isclose(float(mine or 0), float(theirs or 0), rel_tol=1e-14)


def agrees(case: Case) -> bool:
    type_, answers = ours(case)
    if REFUSED in (type_, case.type):
        return type_ == case.type
    return shown(type_) == shown(case.type) and all(
        equal(mine, theirs, type_) for mine, theirs in zip(answers, case.answers, strict=True)
    )


@pytest.mark.parametrize("case", [c for c in cases() if c.name not in DIFFERENT], ids=lambda c: c.name)
def test_an_expression_is_answered_as_flink_answers_it(case):
    type_, answers = ours(case)
    assert agrees(case), f"ours: {type_} {answers}, Flink's: {case.type} {case.answers}"


@pytest.mark.parametrize("case", [c for c in cases() if c.name in DIFFERENT], ids=lambda c: c.name)
def test_a_listed_difference_is_one(case):
    assert not agrees(case)


def test_every_listed_difference_is_an_expression_of_the_oracle():
    assert {c.name for c in cases()} >= DIFFERENT
