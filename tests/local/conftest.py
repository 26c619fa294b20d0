"""A database in which oracles answer in batch."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest


@pytest.fixture(scope="session")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """One database for all tests: to open one takes 20 ms."""
    with duckdb.connect() as opened:
        yield opened


@pytest.fixture
def batch(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose temporary tables and views no other test sees."""
    with database.cursor() as connection:
        yield connection
