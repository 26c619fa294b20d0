"""Whether a watermark rises with its column is known from its expression."""

from __future__ import annotations

import pytest

from service.plan.lowering.monotone import rises_with
from service.plan.passes.expand_computed import watermark
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE t (
  id STRING, ms BIGINT, d DOUBLE, text STRING, ltz TIMESTAMP_LTZ(3), ts AS {time}, WATERMARK FOR ts AS {watermark}
)  WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE o (id STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
INSERT INTO o SELECT id FROM t;
"""


@pytest.mark.parametrize(
    ("time", "watermark_text", "column"),
    [
        ("TO_TIMESTAMP_LTZ(ms, 3)", "ts", 1),
        ("TO_TIMESTAMP_LTZ(ms, 0)", "ts - INTERVAL '5' SECOND", 1),
        ("ltz", "ts + INTERVAL '1' HOUR - INTERVAL '1' DAY", 4),
        ("ltz", "ts - INTERVAL '1' MONTH", None),
        ("TO_TIMESTAMP_LTZ(d, 3)", "ts", None),
        ("TO_TIMESTAMP_LTZ(-ms, 3)", "ts", None),
        ("TO_TIMESTAMP_LTZ(ms, 3)", "ts - ms * INTERVAL '1' SECOND", None),
        ("TO_TIMESTAMP(text)", "ts", None),
        ("ltz", "CASE WHEN ms > 0 THEN ts END", None),
    ],
)
def test_a_watermark_rises_with_its_column_where_that_is_known(
    time: str, watermark_text: str, column: int | None
) -> None:
    table = read(PIPELINE.format(time=time, watermark=watermark_text)).tables["t"]
    asserted = watermark(table)
    assert asserted is not None
    assert rises_with(asserted) == column
