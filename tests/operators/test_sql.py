"""How statements answer, and how they fail."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from operators.sql import SMALL, Sql

STRICT = """SELECT from_json_strict(v, '{"a": "INTEGER"}') AS a FROM texts"""


@pytest.mark.parametrize("rows", [1, SMALL + 1])
@pytest.mark.parametrize("shift", range(4))
def test_an_error_that_quotes_half_a_character_is_still_an_error_of_duckdb(rows, shift):
    text = '{"a": "' + "x" * shift + "\U0001f600" * 500 + '"}'
    with pytest.raises((duckdb.ConversionException, duckdb.InvalidInputException)):
        Sql()(STRICT, {"texts": pa.table({"v": [text] * rows})})
