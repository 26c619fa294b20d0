"""What we rely on of the insides of DuckDB's package: after an upgrade these tests fail first."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pytest

from operators.arrow_answers import answer

STATEMENTS = [
    "SELECT 1 AS a, 'x' AS b, 1.50 AS c, TIMESTAMP '2024-01-01 00:00:00.123456' AS d, NULL AS e",
    "SELECT range AS a, [range, NULL] AS b, {'c': range} AS c, MAP {'k': range} AS d FROM range(5)",
    "SELECT range AS a FROM range(300000) ORDER BY a DESC",
    "SELECT 1 AS a WHERE false",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_answer_is_that_of_a_relation(statement: str):
    with duckdb.connect() as connection:
        found = answer(connection, statement)
        expected = connection.sql(statement).to_arrow_table()
        assert found.schema == expected.schema
        assert found.equals(expected)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_prepared_statement_answers_as_it_does_unprepared(statement: str):
    with duckdb.connect() as connection:
        connection.execute(f"PREPARE p AS {statement}")
        assert answer(connection, "EXECUTE p").equals(answer(connection, statement))


def test_parameters_are_given_by_name():
    with duckdb.connect() as connection:
        given = {"after": datetime(2024, 1, 1), "least": 2}
        found = answer(connection, "SELECT $least + 1 AS a, $after AS b", given)
        assert found.to_pylist() == [{"a": 3, "b": datetime(2024, 1, 1)}]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT CAST('x' AS INTEGER)", duckdb.ConversionException),
        ("SELECT 127::TINYINT + 1::TINYINT", duckdb.OutOfRangeException),
        ("SELECT error('it is so')", duckdb.InvalidInputException),
        ("SELECT a FROM nowhere", duckdb.CatalogException),
    ],
)
def test_errors_are_those_of_duckdb_and_the_connection_answers_afterwards(statement: str, error: type[Exception]):
    with duckdb.connect() as connection:
        with pytest.raises(error):
            answer(connection, statement)
        assert answer(connection, "SELECT 1 AS a").to_pylist() == [{"a": 1}]
