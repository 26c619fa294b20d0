"""Asking a database for keys: pieces, values, failures and tries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.databases.client import DatabaseTable
from service.databases.errors import DatabaseConfigError, DatabaseFailure, DatabaseUnreachable
from service.databases.looked_up_table import looked_up_table
from service.databases.lookups import mistakes_of
from service.databases.rows import FoundRow
from service.plan.program import Lookup
from service.plan.table import LookupOptions
from service.plan.types import BIGINT, INT, STRING, Decimal, Timestamp
from tests.databases.tables import lookup_of, sqlite_file


class _Clock:
    """A clock that only pauses move on."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def now(self) -> float:
        return sum(self.pauses)


@pytest.fixture
def opened():
    tables: list[DatabaseTable] = []

    def opener(lookup: Lookup, clock: _Clock | None = None) -> DatabaseTable:
        clock = clock or _Clock()
        tables.append(DatabaseTable(looked_up_table(lookup), clock.pause, clock.now))
        return tables[-1]

    yield opener
    for table in tables:
        table.close()


Opener = Callable[..., DatabaseTable]
TABLE = "CREATE TABLE customers (id BIGINT, name TEXT)"


def test_the_rows_of_many_keys_come_in_pieces(tmp_path: Path, opened: Opener):
    rows = ", ".join(f"({i}, 'n{i}')" for i in range(0, 100, 2))
    url = sqlite_file(tmp_path, TABLE, f"INSERT INTO customers VALUES {rows}, (4, 'again')")
    found = opened(lookup_of(url, LookupOptions("customers", keys=7, connections=3))).rows([(i,) for i in range(100)])
    assert len(found) == 50
    assert [row.values for row in found[4,]] == [(4, "n4"), (4, "again")]


def test_a_key_of_several_columns_is_asked_for_as_a_whole(tmp_path: Path, opened: Opener):
    url = sqlite_file(
        tmp_path,
        "CREATE TABLE customers (a INT, b TEXT, at TIMESTAMP, price NUMERIC)",
        "INSERT INTO customers VALUES (1, 'x', '2024-01-01 00:00:00', 1.5), (1, 'y', NULL, 2), (2, 'x', NULL, 3)",
    )
    columns = (("a", INT), ("b", STRING), ("at", Timestamp(3)), ("price", Decimal(5, 2)))
    found = opened(lookup_of(url, columns=columns, keys=(1, 0))).rows([("x", 1), ("x", 2), ("z", 1)])
    assert sorted(found) == [("x", 1), ("x", 2)]


def test_what_the_database_alone_calls_equal_is_no_match(tmp_path: Path, opened: Opener):
    url = sqlite_file(
        tmp_path,
        "CREATE TABLE customers (id BIGINT, name TEXT COLLATE NOCASE)",
        "INSERT INTO customers VALUES (1, 'ann'), (2, 'ANN')",
    )
    found = opened(lookup_of(url, keys=(1,))).rows([("ann",)])
    assert [row.values for row in found["ann",]] == [(1, "ann")]


def test_a_row_that_cannot_be_read_says_of_which_table_and_column(tmp_path: Path, opened: Opener):
    url = sqlite_file(tmp_path, TABLE, "INSERT INTO customers VALUES (1, x'00ff'), (2, 'b')")
    found = opened(lookup_of(url)).rows([(1,), (2,)])
    assert found == {
        (1,): [
            FoundRow((1, None), "table customers: column \"name\" is declared STRING, and is b'\\x00\\xff' (bytes)")
        ],
        (2,): [FoundRow((2, "b"))],
    }


def test_a_key_column_of_another_type_is_an_error_of_the_table(tmp_path: Path, opened: Opener):
    url = sqlite_file(
        tmp_path, "CREATE TABLE customers (id TEXT, name TEXT)", "INSERT INTO customers VALUES ('1', 'a')"
    )
    with pytest.raises(DatabaseConfigError, match='column "id" is declared BIGINT'):
        opened(lookup_of(url)).rows([(1,)])


@pytest.mark.parametrize(
    ("statements", "columns", "expected"),
    [
        ([], (("id", BIGINT),), "no such table: customers"),
        (["CREATE TABLE customers (id BIGINT)"], (("id", BIGINT), ("nam", STRING)), "no such column: nam"),
    ],
)
def test_what_is_not_there_is_an_error_of_the_table_at_once(
    tmp_path: Path, opened: Opener, statements, columns, expected
):
    clock = _Clock()
    with pytest.raises(DatabaseConfigError, match=expected):
        opened(lookup_of(sqlite_file(tmp_path, *statements), columns=columns), clock).rows([(1,)])
    assert clock.pauses == []


def test_a_database_that_is_away_is_asked_again_for_a_while(tmp_path: Path, opened: Opener):
    clock = _Clock()
    with pytest.raises(DatabaseUnreachable, match="the database of table customers cannot be reached"):
        opened(lookup_of(f"jdbc:sqlite:{tmp_path}/none.db", LookupOptions("customers", retries=4)), clock).rows([(1,)])
    assert clock.pauses == [0.5, 1, 2, 4]


def test_a_database_is_not_asked_again_for_longer_than_it_may_take(tmp_path: Path, opened: Opener):
    clock = _Clock()
    options = LookupOptions("customers", retries=100, patience=10_000)
    with pytest.raises(DatabaseUnreachable):
        opened(lookup_of(f"jdbc:sqlite:{tmp_path}/none.db", options), clock).rows([(1,)])
    assert clock.pauses == [0.5, 1, 2, 4]


def test_a_database_that_comes_back_answers(tmp_path: Path, opened: Opener):
    class _Repairing(_Clock):
        def pause(self, seconds: float) -> None:
            super().pause(seconds)
            sqlite_file(tmp_path, TABLE, "INSERT INTO customers VALUES (1, 'a')")

    found = opened(lookup_of(f"jdbc:sqlite:{tmp_path}/test.db"), _Repairing()).rows([(1,)])
    assert [row.values for row in found[1,]] == [(1, "a")]


def test_errors_show_neither_the_url_nor_what_was_asked_for(tmp_path: Path, opened: Opener):
    with pytest.raises(DatabaseFailure) as error:
        opened(lookup_of("postgresql://ann:secret@localhost:1/shop", LookupOptions("customers", retries=0))).rows(
            [(123456,)]
        )
    assert isinstance(error.value, DatabaseUnreachable)
    assert "secret" not in str(error.value)
    assert "123456" not in str(error.value)


def test_a_url_whose_driver_is_not_there_says_what_to_do():
    with pytest.raises(DatabaseConfigError, match="needs its driver for Python"):
        DatabaseTable(looked_up_table(lookup_of("oracle+cx_oracle://ann:secret@db/shop")))


def test_before_anything_is_looked_up_the_names_of_a_table_are_compared_with_those_of_its_database(tmp_path: Path):
    url = sqlite_file(tmp_path, TABLE)
    assert mistakes_of(lookup_of(url)) == []
    assert mistakes_of(lookup_of(url, columns=(("id", INT), ("nam", STRING), ("x", INT)))) == [
        'table customers: its table in the database has no column "nam"\n'
        "  detail: it has id, name\n"
        '  hint:   did you mean "name"?',
        'table customers: its table in the database has no column "x"\n  detail: it has id, name',
    ]
    (gone,) = mistakes_of(lookup_of(url, LookupOptions("people")))
    assert gone.startswith('table customers: its database has no table "people"')
