"""Lookups in a real PostgreSQL: types, keys, logins, and a server that goes and comes back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal as Number

import pyarrow as pa
import pytest

from operators.names import REASON
from service.databases.check import mistakes
from service.databases.client import DatabaseTable
from service.databases.errors import DatabaseConfigError, DatabaseUnreachable
from service.databases.looked_up_table import looked_up_table
from service.databases.lookups import TableLookup, mistakes_of
from service.plan.program import Lookup
from service.plan.table import LookupOptions
from service.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    Array,
    Decimal,
    Text,
    Time,
    Timestamp,
    TimestampLtz,
)
from tests.databases.postgres import PASSWORD, Postgres, postgres
from tests.databases.tables import Columns, lookup_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the package that brings PostgreSQL is for Linux")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture
def opened() -> Iterator[Callable[[Lookup], TableLookup]]:
    tables: list[TableLookup] = []

    def opener(lookup: Lookup) -> TableLookup:
        tables.append(TableLookup(looked_up_table(lookup)))
        return tables[-1]

    yield opener
    for table in tables:
        table.close()


Opener = Callable[[Lookup], TableLookup]


def in_server(server: Postgres, lookup: Lookup) -> Lookup:
    """The lookup with user and password as options of their own."""
    settings = {"url": server.url, "username": "shop", "password": PASSWORD}
    return replace(lookup, table=replace(lookup.table, connector=replace(lookup.table.connector, properties=settings)))


def table(server: Postgres, name: str, columns: Columns, **given: object) -> Lookup:
    keys = given.pop("keys", (0,))
    options = LookupOptions(name, **given)  # type: ignore[arg-type]
    return in_server(server, lookup_of(server.url, options, columns=columns, keys=keys))  # type: ignore[arg-type]


def keys(*columns: list[object]) -> pa.Table:
    return pa.table({f"c{i}": pa.array(column) for i, column in enumerate(columns)})


TYPES: Columns = (
    ("id", BIGINT),
    ("s", SMALLINT),
    ("b", BOOLEAN),
    ("f", FLOAT),
    ("d", DOUBLE),
    ("n", Decimal(10, 2)),
    ("t", STRING),
    ("c", Text(3)),
    ("u", STRING),
    ("y", BYTES),
    ("day", DATE),
    ("clock", Time(0)),
    ("at", Timestamp(3)),
    ("instant", TimestampLtz(6)),
    ("list", Array(INT)),
)


@pytest.fixture(scope="module")
def kinds(server: Postgres) -> None:
    """The table kinds: a row with a value of every type, and one of NULLs."""
    server.run(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE TABLE kinds (id bigint, s smallint, b boolean, f real, d double precision, n numeric(10, 2), t mood,"
        " c varchar(3), u uuid, y bytea, day date, clock time, at timestamp, instant timestamptz, list int[])",
        "INSERT INTO kinds VALUES (1, 2, true, 0.5, 0.1, 1.25, 'glad', 'abc', '00000000-0000-0000-0000-000000000005',"
        " '\\x00ff', '2024-02-29', '10:11:12', '2024-01-01 00:00:05.25', '2024-01-01 02:00:00+02', '{1,NULL}')",
        "INSERT INTO kinds (id) VALUES (2)",
    )


@pytest.mark.usefixtures("kinds")
def test_every_type_arrives_as_it_is_declared(server: Postgres, opened: Opener):
    found = opened(table(server, "public.kinds", TYPES)).found(keys([1, 2, 3]), 0)
    assert [[*row.values()] for row in found.sort_by("c0").to_pylist()] == [
        [
            *(1, 2, True, 0.5, 0.1, Number("1.25"), "glad", "abc", "00000000-0000-0000-0000-000000000005", b"\x00\xff"),
            *(date(2024, 2, 29), time(10, 11, 12), datetime(2024, 1, 1, 0, 0, 5, 250_000), datetime(2024, 1, 1)),
            *([1, None], None),
        ],
        [2, *[None] * 15],
    ]


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, 2),
        (5, Number("1.25")),
        (6, "glad"),
        (8, "00000000-0000-0000-0000-000000000005"),
        (10, date(2024, 2, 29)),
        (12, datetime(2024, 1, 1, 0, 0, 5, 250_000)),
        (13, datetime(2024, 1, 1)),
    ],
)
def test_a_key_may_be_of_any_type(server: Postgres, opened: Opener, place: int, value: object):
    found = opened(table(server, "kinds", TYPES, keys=(place,))).found(keys([value]), 0)
    assert found.column("c0").to_pylist() == [1]


def test_keys_of_several_columns_and_many_pieces(server: Postgres, opened: Opener):
    server.run(
        'CREATE TABLE "Pairs" (a bigint, "B" text, v bigint)',
        "INSERT INTO \"Pairs\" SELECT i, 'k' || (i % 7), i * i FROM generate_series(1, 5000) AS i",
    )
    columns: Columns = (("a", BIGINT), ("B", STRING), ("v", BIGINT))
    lookup = opened(table(server, "Pairs", columns, keys=(1, 0)))
    asked = keys([f"k{i % 7}" for i in range(1, 9000)], list(range(1, 9000)))
    found = lookup.found(asked, 0)
    assert found.num_rows == 5000
    assert sum(found.column("c2").to_pylist()) == sum(i * i for i in range(1, 5001))


@pytest.mark.usefixtures("kinds")
def test_a_key_that_the_database_cannot_read_does_not_stop_the_others(server: Postgres, opened: Opener):
    lookup = opened(table(server, "kinds", (("u", STRING), ("id", BIGINT))))
    found = lookup.found(keys(["no uuid", "00000000-0000-0000-0000-000000000005"]), 0)
    values = {row["c0"]: (row["c1"], row[REASON]) for row in found.to_pylist()}
    assert values["00000000-0000-0000-0000-000000000005"] == (1, None)
    value, why = values["no uuid"]
    assert value is None
    assert why.startswith("it cannot be looked up in table customers: invalid input syntax for type uuid")


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        ("nothing", (("id", BIGINT),), 'relation "nothing" does not exist'),
        ("kinds", (("id", BIGINT), ("nam", STRING)), 'column "nam" does not exist'),
    ],
)
@pytest.mark.usefixtures("kinds")
def test_what_is_not_there_is_an_error_of_the_table(server: Postgres, opened: Opener, name, columns, expected):
    with pytest.raises(DatabaseConfigError, match=expected):
        opened(table(server, name, columns)).found(keys([1]), 0)


def test_a_wrong_password_is_reported_without_it(server: Postgres, opened: Opener):
    lookup = lookup_of(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=shop&password=wrong+one")
    options = LookupOptions("customers", retries=0)
    connector = replace(lookup.table.connector, lookup=options)
    with pytest.raises((DatabaseUnreachable, DatabaseConfigError), match="password authentication failed") as error:
        opened(replace(lookup, table=replace(lookup.table, connector=connector))).found(keys([1]), 0)
    assert "wrong" not in str(error.value)


@pytest.mark.parametrize(
    ("database", "login", "expected"),
    [
        ("postgres", {"username": "shop", "password": "wrong one"}, "password authentication failed"),
        ("postgres", {"username": "shop"}, "no password supplied"),
        ("postgres", {"username": "nobody", "password": "wrong one"}, "password authentication failed"),
        ("nothing", {"username": "shop", "password": PASSWORD}, 'database "nothing" does not exist'),
    ],
)
def test_a_login_that_is_refused_is_a_mistake_before_the_start(
    server: Postgres, database: str, login: dict[str, str], expected: str
):
    lookup = table(server, "customers", (("id", BIGINT), ("name", STRING)))
    properties = {"url": f"{server.url.rpartition('/')[0]}/{database}"}
    connector = replace(lookup.table.connector, properties={**properties, **login})
    (mistake,) = mistakes(looked_up_table(replace(lookup, table=replace(lookup.table, connector=connector))))
    assert "refuses the login" in mistake
    assert expected in mistake
    assert "wrong one" not in mistake


def test_a_server_that_does_not_answer_at_the_start_is_asked_later(server: Postgres):
    lookup = table(server, "customers", (("id", BIGINT), ("name", STRING)))
    server.stop()
    try:
        assert mistakes(looked_up_table(lookup)) == []
    finally:
        server.start()


def test_a_server_that_goes_and_comes_back_is_asked_again(server: Postgres):
    server.run("CREATE TABLE customers (id bigint, name text)", "INSERT INTO customers VALUES (1, 'a')")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            server.start()

    client = DatabaseTable(looked_up_table(in_server(server, lookup_of(server.url))), pause, lambda: sum(pauses))
    try:
        assert client.rows([(1,)])[1,][0].values == (1, "a")
        server.stop()
        assert client.rows([(1,)])[1,][0].values == (1, "a")
        assert pauses[:2] == [0.5, 1]
    finally:
        client.close()


def test_rows_that_are_remembered_are_not_asked_for(server: Postgres, opened: Opener):
    server.run("CREATE TABLE cached (id bigint, name text)", "INSERT INTO cached VALUES (1, 'old')")
    columns: Columns = (("id", BIGINT), ("name", STRING))
    lookup = opened(table(server, "cached", columns, cached=True, expire_after_write=10))
    assert lookup.found(keys([1, 2]), 0).column("c1").to_pylist() == ["old"]
    server.run("UPDATE cached SET name = 'new'", "INSERT INTO cached VALUES (2, 'two')")
    assert lookup.found(keys([1, 2]), 9).column("c1").to_pylist() == ["old"]
    assert lookup.found(keys([1, 2]), 10).column("c1").to_pylist() == ["new", "two"]


def test_a_table_whose_columns_are_as_declared_has_no_mistakes(server: Postgres):
    server.run("CREATE TYPE size AS ENUM ('s', 'm')", "CREATE TABLE sizes (id bigint, t size, c varchar(3), u uuid)")
    sizes: Columns = (("id", BIGINT), ("t", STRING), ("c", Text(3)), ("u", STRING))
    assert mistakes_of(table(server, "public.sizes", sizes)) == []
    server.run(
        "CREATE TABLE checked (id bigint, s smallint, b boolean, f real, d double precision, n numeric(10, 2), t text,"
        " c varchar(3), u uuid, y bytea, day date, clock time, at timestamp, instant timestamptz, list int[])",
        "CREATE VIEW seen AS SELECT * FROM checked",
    )
    assert mistakes_of(table(server, "checked", TYPES)) == mistakes_of(table(server, "seen", TYPES)) == []


def test_all_mistakes_of_a_declared_table_are_reported_at_once(server: Postgres):
    server.run("CREATE TABLE wrong (id bigint, words jsonb, city text, at timestamptz, list int[])")
    columns: Columns = (("id", STRING), ("words", STRING), ("cty", STRING), ("at", Timestamp(3)), ("list", BIGINT))
    assert [each.splitlines() for each in mistakes_of(table(server, "wrong", columns))] == [
        [f'table customers: column "{name}" is declared {declared}, and is {there} in the database', HINT]
        if declared
        else [
            'table customers: its table in the database has no column "cty"',
            "  detail: it has id, words, city, at, list",
            '  hint:   did you mean "city"?',
        ]
        for name, declared, there in (
            ("id", "STRING", "BIGINT"),
            ("words", "STRING", "JSONB"),
            ("cty", "", ""),
            ("at", "TIMESTAMP(3)", "TIMESTAMP WITH TIME ZONE"),
            ("list", "BIGINT", "INTEGER[]"),
        )
    ]


HINT = "  hint:   declare it as the database has it, or make a view there that casts it"


def test_a_table_that_is_not_there_is_a_mistake_and_a_server_that_is_away_is_none(server: Postgres):
    (gone,) = mistakes_of(table(server, "public.nobody", TYPES))
    assert gone.startswith('table customers: its database has no table "public.nobody"')
    known = table(server, "checked", TYPES)
    nowhere = {"url": "jdbc:postgresql://127.0.0.1:1/postgres"}
    away = replace(known, table=replace(known.table, connector=replace(known.table.connector, properties=nowhere)))
    assert mistakes_of(away) == []
