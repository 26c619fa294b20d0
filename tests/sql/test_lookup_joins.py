"""Lookup joins: how tables of databases are declared, and what of a query is one."""

from __future__ import annotations

import pytest

from service.plan.explain import as_text, explain
from service.plan.lowering.lower import compile_job
from service.plan.nodes import JoinKind, LookupJoin
from service.plan.passes import normalize
from service.plan.properties import unique_keys
from service.plan.table import LookupOptions, Table
from service.plan.walk import fields, in_order
from service.sql.pipeline import PipelineErrors, read

WITH = "WITH ('connector' = 'kafka', 'topic' = 't', 'scan.startup.mode' = 'earliest-offset', 'format' = '{}')"
JDBC = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'customers'"
COLUMNS = "id INT, name STRING, age INT"
TABLES = f"""
CREATE TABLE orders (id BIGINT, customer INT, who STRING, ts TIMESTAMP(3), at AS PROCTIME(), WATERMARK FOR ts AS ts)
{WITH.format("json")};
CREATE TABLE changing (id BIGINT, customer INT, at AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE customers ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ({JDBC});
CREATE TABLE visits (customer INT, day_ DATE, price DECIMAL(10, 2)) WITH ({JDBC});
CREATE VIEW adults AS SELECT id, name FROM customers WHERE age > 17;
"""
AS_OF = "FOR SYSTEM_TIME AS OF o.at AS c"


def join_of(query: str, before: str = "") -> LookupJoin:
    (job,) = read(f"{TABLES} {before} EXPLAIN {query}").explains
    (found,) = [node for node in in_order(normalize(job).sinks) if isinstance(node, LookupJoin)]
    return found


def mistakes(query: str) -> list[str]:
    with pytest.raises(PipelineErrors) as error:
        read(f"{TABLES} EXPLAIN {query}")
    return [str(m).partition(": ")[2] for m in error.value.mistakes]


def declared(options: str = "", columns: str = COLUMNS, more: str = "") -> Table:
    return read(f"CREATE TABLE c ({columns}{more}) WITH ({JDBC}{options})").tables["c"]


def refused(options: str = "", columns: str = COLUMNS, more: str = "") -> str:
    with pytest.raises(PipelineErrors) as error:
        declared(options, columns, more)
    return str(error.value)


def test_only_the_columns_that_are_read_are_asked_for_and_those_of_the_key():
    join = join_of(f"SELECT o.who, c.name FROM orders AS o JOIN customers {AS_OF} ON o.customer = c.id")
    assert [f.name for f in fields(join.right)] == ["id", "name"]
    assert (join.kind, len(join.left_keys), join.right_keys, join.residual) == (JoinKind.INNER, 1, (0,), None)


def test_other_conditions_decide_whether_a_row_that_was_found_is_met():
    join = join_of(
        f"SELECT c.name FROM orders AS o LEFT JOIN customers {AS_OF}"
        " ON o.customer = c.id AND c.age > 17 AND o.who < c.name AND CHAR_LENGTH(c.name) = o.id"
    )
    assert join.right_keys == (0,)
    assert join.residual is not None
    assert all(field.nullable for field in join.fields[len(fields(join.left)) :])


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize(
    ("form", "keys"), [("{join} customers {as_of} USING (id)", (0,)), ("NATURAL {join} customers {as_of}", (0,))]
)
def test_columns_of_one_name_are_looked_up_by_using_and_natural(join: str, form: str, keys: tuple[int, ...]):
    query = f"SELECT id, o.who, c.name FROM orders AS o {form.format(join=join, as_of=AS_OF)}"
    assert join_of(query).right_keys == keys


def test_every_column_with_an_equality_is_part_of_the_key():
    join = join_of(f"SELECT * FROM orders AS o JOIN customers {AS_OF} ON o.who = c.name AND o.customer = c.id")
    assert [fields(join.right)[k].name for k in join.right_keys] == ["id", "name"]


def test_a_key_of_another_width_is_looked_up_as_it_is():
    join = join_of(f"SELECT c.name FROM orders AS o JOIN customers {AS_OF} ON o.id = c.id")
    assert fields(join.left)[join.left_keys[0]].name == "id"
    assert join.residual is None


@pytest.mark.parametrize(
    ("table", "known"), [("customers", [{"id"}]), ("visits", [])], ids=["one row a key", "any number of rows a key"]
)
def test_rows_stay_unique_where_the_primary_key_is_looked_up(table: str, known: list[set[str]]):
    key = "id" if table == "customers" else "customer"
    join = join_of(f"SELECT o.id, o.customer, c.* FROM changing AS o JOIN {table} {AS_OF} ON o.customer = c.{key}")
    assert [{join.fields[k].name for k in key} for key in unique_keys(join)] == known


def test_a_row_that_may_be_retracted_is_kept_with_what_it_met_and_others_are_not():
    (changing, plain) = (
        read(f"{TABLES} EXPLAIN SELECT c.name FROM {left} AS o JOIN customers {AS_OF} ON o.customer = c.id").explains[0]
        for left in ("changing", "orders")
    )
    kept = "keeps left rows by (customer) and the rows that they have matched, without a bound"
    assert kept in as_text(explain(changing), "f")
    assert "have matched" not in as_text(explain(plain), "f")
    kernels = [o.kernel for o in compile_job(plain).operators if o.lookup is not None]
    assert [kernel.traces() for kernel in kernels] == [{}]


def test_the_processing_time_behind_what_holds_rows_back_may_be_looked_up_by():
    chosen = "SELECT id, customer, at FROM orders WHERE id IN (SELECT id FROM changing)"
    for left in (chosen, "SELECT o.id, o.customer, o.at FROM orders AS o LEFT JOIN changing AS x ON o.id = x.id"):
        join = join_of(f"SELECT c.name FROM ({left}) AS o JOIN customers {AS_OF} ON o.customer = c.id")
        assert [f.name for f in fields(join.right)] == ["id", "name"]


def test_a_ttl_bounds_what_is_kept():
    join = join_of(
        f"SELECT /*+ STATE_TTL('o' = '1h') */ c.name FROM changing AS o JOIN customers {AS_OF} ON o.customer = c.id"
    )
    assert join.ttl == 3_600_000


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT * FROM orders AS o JOIN customers FOR SYSTEM_TIME AS OF o.ts AS c ON o.customer = c.id",
            '"c" has no versions by time',
        ),
        (f"SELECT * FROM orders AS o JOIN customers {AS_OF} ON c.age > 5", 'does not say which rows of "c"'),
        (f"SELECT * FROM orders AS o JOIN adults {AS_OF} ON o.customer = c.id", '"c" cannot be looked up'),
        (f"SELECT * FROM orders AS o FULL JOIN customers {AS_OF} ON o.customer = c.id", "cannot be FULL"),
        (
            f"SELECT * FROM orders AS o JOIN customers {AS_OF} ON o.customer = c.id AND o.id = c.nme",
            'column "nme" does not exist',
        ),
    ],
)
def test_what_cannot_be_looked_up_is_refused(query: str, expected: str):
    assert any(expected in mistake for mistake in mistakes(query)), mistakes(query)


@pytest.mark.parametrize(
    "query", ["SELECT name FROM customers", "SELECT o.id FROM orders AS o JOIN customers AS c ON o.customer = c.id"]
)
def test_a_table_of_a_database_is_no_stream(query: str):
    (mistake,) = mistakes(query)
    assert mistake.startswith('table "customers" of a database cannot be read as a stream')
    assert "FOR SYSTEM_TIME AS OF" in mistake


def test_a_table_of_a_database_is_not_written():
    with pytest.raises(PipelineErrors, match="'jdbc' is looked up, and not written"):
        read(f"{TABLES} INSERT INTO customers SELECT customer, who, 1 FROM orders")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", LookupOptions("customers")),
        (", 'lookup.cache' = 'PARTIAL'", LookupOptions("customers", cached=True)),
        (
            ", 'lookup.cache' = 'partial', 'lookup.partial-cache.max-rows' = '5',"
            " 'lookup.partial-cache.expire-after-write' = '10 min',"
            " 'lookup.partial-cache.expire-after-access' = '5 s', 'lookup.partial-cache.cache-missing-key' = 'false'",
            LookupOptions(
                "customers",
                cached=True,
                max_rows=5,
                expire_after_write=600_000,
                expire_after_access=5_000,
                cache_missing=False,
            ),
        ),
        (
            ", 'lookup.cache.max-rows' = '5', 'lookup.cache.ttl' = '1 min'",
            LookupOptions("customers", cached=True, max_rows=5, expire_after_write=60_000),
        ),
        (
            ", 'lookup.max-retries' = '7', 'connection.max-retry-timeout' = '5 s', 'tailrace.lookup.batch-keys' = '10',"
            " 'tailrace.lookup.connections' = '2', 'driver' = 'org.postgresql.Driver'",
            LookupOptions("customers", retries=7, patience=5_000, keys=10, connections=2),
        ),
    ],
)
def test_options_say_how_the_table_is_asked(options: str, expected: LookupOptions):
    assert declared(options).lookup == expected


def test_where_the_database_is_and_who_logs_in_is_shown_nowhere():
    table = declared(", 'username' = 'ann', 'password' = 'hush'")
    assert table.connector.properties == {"url": "jdbc:postgresql://db/shop", "username": "ann", "password": "hush"}
    tables = TABLES.replace(JDBC, f"{JDBC}, 'password' = 'hush'")
    query = f"SELECT c.name FROM orders AS o JOIN customers {AS_OF} ON o.customer = c.id"
    (found,) = read(f"{tables} EXPLAIN {query}").explains
    assert "hush" not in as_text(explain(found), "f")
    assert "postgresql" not in as_text(explain(found), "f")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (", 'lookup.cache' = 'FULL'", "option 'lookup.cache' cannot be 'FULL'"),
        (", 'lookup.max-retry' = '5'", "connector 'jdbc' has no option 'lookup.max-retry'"),
        (", 'format' = 'json'", "connector 'jdbc' has no option 'format'"),
    ],
)
def test_options_that_have_no_meaning_are_refused(options: str, expected: str):
    assert expected in refused(options)


def test_what_is_missing_is_named():
    with pytest.raises(PipelineErrors, match="option 'url' is missing") as error:
        read("CREATE TABLE c (id INT) WITH ('connector' = 'jdbc')")
    assert "option 'table-name' is missing" in str(error.value)


def test_a_url_of_another_database_says_what_is_known_and_not_itself():
    with pytest.raises(PipelineErrors, match="of JDBC, only PostgreSQL and SQLite are known"):
        read("CREATE TABLE c (id INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:oracle:x', 'table-name' = 'c')")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (", twice AS age * 2", 'column "twice" cannot be computed in a table of a database'),
        (", at AS PROCTIME()", 'column "at" cannot be computed in a table of a database'),
        (", m MAP<STRING, INT>", 'column "m" cannot be read from a database'),
        (", o BIGINT METADATA FROM 'offset'", "connector 'jdbc' has no metadata"),
        (", ts TIMESTAMP(3), WATERMARK FOR ts AS ts", "a table of a database has no WATERMARK"),
    ],
)
def test_columns_that_a_lookup_cannot_give_are_refused(more: str, expected: str):
    assert expected in refused(more=more)


@pytest.mark.parametrize(
    ("condition", "keys", "rest"),
    [
        ("o.customer = c.id AND c.age = 18", ["id", "age"], False),
        ("'Ann' = c.name AND o.customer = c.id", ["id", "name"], False),
        ("c.age = -1", ["age"], False),
        ("o.customer = c.id AND c.age = 5000000000", ["id"], True),
        ("o.customer = c.id AND c.age = 18.5", ["id"], True),
        ("o.customer = c.id AND c.age > 18", ["id"], True),
    ],
)
def test_a_constant_of_the_type_of_its_column_is_asked_for_too(condition: str, keys: list[str], rest: bool):
    join = join_of(f"SELECT c.name FROM orders AS o LEFT JOIN customers {AS_OF} ON {condition}")
    assert [fields(join.right)[k].name for k in join.right_keys] == keys
    assert (join.residual is not None) is rest


def test_the_hint_of_flink_for_lookups_is_not_needed():
    query = f"SELECT {{}} c.name FROM orders AS o JOIN customers {AS_OF} ON o.customer = c.id"
    hint = "/*+ LOOKUP('table'='c', 'async'='true', 'output-mode'='allow_unordered', 'shuffle'='true') */"
    found = read(f"{TABLES} EXPLAIN {query.format(hint)}")
    assert [note.primary for note in found.notes] == ["the hint LOOKUP has no effect"]
    for options, message in (
        ("'table'='x'", 'LOOKUP names "x", which the query does not join'),
        ("'table'='c', 'retry-predicate'='lookup_miss'", "a lookup that finds no row is not tried again"),
        ("'table'='c', 'asinc'='true'", 'LOOKUP has no option "asinc"'),
    ):
        assert [m.splitlines()[0] for m in mistakes(query.format(f"/*+ LOOKUP({options}) */"))] == [message]
