"""State belongs to what operators mean, not to how DuckDB computes it: what mends of Tailrace make of a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from operators.aggregates.functions import AGGREGATES
from operators.aggregates.group_by import GroupBy
from operators.sql import Sql
from service.plan.types import BIGINT, INT, STRING
from service.runtime.shard_operators import StateMismatch
from service.sql.expressions import casts
from service.sql.functions import FORMS, FUNCTIONS
from service.sql.functions.patterns import PATTERNS
from service.sql.functions.signature import at_version, plain
from tests.spark import test_upgrades as upgrades
from tests.spark.test_upgrades import KAFKA, UPSERTS, Service

sql = upgrades.sql
QUERY = f"""
CREATE TABLE orders (u STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND)
WITH ({KAFKA}, 'topic' = 'orders');
CREATE TABLE best (u STRING, total BIGINT) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'debezium-json');
CREATE TABLE pairs (u STRING, total BIGINT, PRIMARY KEY (u) NOT ENFORCED) WITH ({UPSERTS}, 'topic' = 'pairs');
EXECUTE STATEMENT SET BEGIN
INSERT INTO best SELECT u, total FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC) AS r
  FROM (SELECT UPPER(TRIM(u)) AS u, SUM(amount) AS total FROM orders GROUP BY UPPER(TRIM(u)))) WHERE r <= 2;
INSERT INTO pairs SELECT a.u, COUNT(*) FROM orders a JOIN orders b
  ON a.u = b.u AND CAST(a.amount AS STRING) LIKE '1%' AND CHAR_LENGTH(b.u) > 0 GROUP BY a.u;
END;
"""
Mend = Callable[[pytest.MonkeyPatch], None]


def function(name: str, *overloads: Any) -> Mend:
    return lambda patch: patch.setitem(FUNCTIONS, name, overloads)


def form(name: str, version: int) -> Mend:
    return lambda patch: patch.setitem(FORMS, name, at_version(version, FORMS[name]))


def aggregate(name: str, **changes: Any) -> Mend:
    return lambda patch: patch.setitem(AGGREGATES, name, replace(AGGREGATES[name], **changes))


def cast_template(patch: pytest.MonkeyPatch) -> None:
    """Casts with a text that is another and answers the same."""
    before = casts.template_of
    patch.setattr(casts, "template_of", lambda *given: (text := before(*given)) and text.replace("{0}", "({0})"))


MENDED: Mapping[str, Mend] = {
    "the text of a function in a key": function("UPPER", plain("STRING", STRING, "upper({0} || '')")),
    "the text of a function in a condition of a join": function(
        "CHAR_LENGTH", plain("STRING", INT, "CAST(length({0} || '') AS INTEGER)")
    ),
    "the text of casts": cast_template,
    "how an aggregate is read": aggregate(
        "COUNT", finish=lambda _, columns, type_: f"CAST({columns[0][0]} + 0 AS BIGINT)"
    ),
    "how an aggregate is kept of floating-point numbers, of which there are none": aggregate("SUM", floating=3),
}


@pytest.mark.parametrize("name", MENDED)
def test_state_is_kept_where_a_mend_changes_duckdb_text_alone(
    name: str, tmp_path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, always = Service(tmp_path / "going", sql), Service(tmp_path / "always", sql)
    for each in (going, always):
        each.start(QUERY)
        for _ in range(3):
            each.do(2)
    before = going.program
    MENDED[name](monkeypatch)
    going.start(QUERY)
    assert going.upgrade is None
    assert going.program.meaning == before.meaning
    kernels = [[repr(o.kernel) for o in program.operators] for program in (before, going.program)]
    assert name.startswith("how an aggregate") or kernels[0] != kernels[1], "the mend is in the program"
    for _ in range(2):
        assert going.do(2) == always.do(2)


class Raised(NamedTuple):
    """A version that is raised, the operators whose state is lost, and what is said of each."""

    mend: Mend
    lost: tuple[str, ...]
    message: str


def kernel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupBy, "version", 2)


def cast_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(casts, "_VERSIONS", {(type(BIGINT), type(STRING)): 2})


RAISED: Mapping[str, Raised] = {
    "of a function": Raised(
        function("UPPER", replace(FUNCTIONS["UPPER"][0], version=2)),
        ("group_by_1", "top_n_1"),
        "function UPPER has version 2 and had version 1",
    ),
    "of a function that is built": Raised(
        function("LIKE", *(replace(each, version=3) for each in PATTERNS["LIKE"])),
        ("join_1", "group_by_2"),
        "function LIKE has version 3 and had version 1",
    ),
    "of a function with words of its own": Raised(
        form("TRIM", 2), ("group_by_1", "top_n_1"), "function TRIM has version 2 and had version 1"
    ),
    "of casts": Raised(
        cast_version, ("join_1", "group_by_2"), "function CAST to STRING has version 2 and had version 1"
    ),
    "of an aggregate": Raised(
        aggregate("SUM", version=2), ("group_by_1", "top_n_1"), "aggregate SUM has version 2 and had version 1"
    ),
    "of an operator, whose outputs are named, too": Raised(
        kernel, ("group_by_1", "top_n_1", "group_by_2"), "operator group_by has version 2 and had version 1"
    ),
}


@pytest.mark.parametrize("name", RAISED)
def test_state_is_refused_where_a_version_is_raised_and_the_message_says_of_what(
    name: str, tmp_path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    mend, lost, message = RAISED[name]
    going = Service(tmp_path, sql)
    going.start(QUERY)
    going.do(2)
    mend(monkeypatch)
    with pytest.raises(StateMismatch, match="nothing was read or written") as refused:
        going.start(QUERY)
    found = {line.split()[1] for line in str(refused.value).splitlines() if "cannot be kept" in line}
    assert found == set(lost)
    assert len(re.findall(rf"cannot be kept: {message}", str(refused.value))) == len(lost), "and nothing else is"


def test_a_program_with_a_raised_version_that_skips_the_check_finds_no_state(
    tmp_path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = Service(tmp_path, sql)
    going.start(QUERY)
    going.do(2)
    going.memory.write("fixed", None)
    RAISED["of a function"].mend(monkeypatch)
    going.start(QUERY)
    with pytest.raises(StateMismatch, match="it has none of group_by_1"):
        going.do(2)
