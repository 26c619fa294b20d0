"""CREATE TABLE ... LIKE: what comes along from the other table."""

from __future__ import annotations

import pytest

from service.plan.table import Table
from service.sql.pipeline import PipelineErrors, read

BASE = """
CREATE TABLE base (
  id BIGINT,
  twice AS id * 2,
  at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  PRIMARY KEY (id) NOT ENFORCED,
  WATERMARK FOR at AS at
) WITH ('connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'b', 'format' = 'json');
"""


def like(clause: str) -> Table:
    return read(f"{BASE} CREATE TABLE t {clause}").tables["t"]


def names(table: Table) -> list[str]:
    return [c.name for c in table.columns]


def test_all_of_the_other_table_comes_along():
    found = like("LIKE base")
    assert names(found) == ["id", "twice", "at"]
    assert (found.key, found.rowtime, found.connector.topics) == ((0,), 2, ("base",))


def test_columns_are_added_and_options_overridden():
    found = like("(more STRING) WITH ('topic' = 't') LIKE base")
    assert names(found) == ["id", "twice", "at", "more"]
    assert found.connector.topics == ("t",)


def test_parts_may_be_left_out():
    found = like("LIKE base (EXCLUDING GENERATED EXCLUDING CONSTRAINTS EXCLUDING WATERMARKS)")
    assert names(found) == ["id", "at"]
    assert (found.key, found.rowtime) == ((), None)


def test_everything_but_physical_columns_may_be_left_out():
    found = like("WITH ('connector' = 'print') LIKE base (EXCLUDING ALL)")
    assert names(found) == ["id"]
    assert found.connector.kind == "print"


def test_a_watermark_may_be_overwritten():
    found = like("(WATERMARK FOR at AS at - INTERVAL '1' HOUR) LIKE base (OVERWRITING WATERMARKS)")
    assert found.watermark is not None
    assert found.watermark != like("LIKE base").watermark


@pytest.mark.parametrize(
    ("clause", "mistake"),
    [
        ("LIKE bass", 'table "bass" does not exist'),
        ("(id STRING) LIKE base", 'column "id" is declared here and by "base"'),
        ("(WATERMARK FOR at AS at) LIKE base", 'the table and "base" both have a WATERMARK'),
        (
            "WITH ('topic' = 't') LIKE base (INCLUDING OPTIONS)",
            "option 'topic' is given here and by \"base\"",
        ),
        ("LIKE base (EXCLUDING TIME)", '"TIME" is not expected here'),
    ],
)
def test_what_does_not_go_together_is_refused(clause: str, mistake: str):
    with pytest.raises(PipelineErrors) as raised:
        like(clause)
    assert [m.primary for m in raised.value.mistakes] == [mistake]
