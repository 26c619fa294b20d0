"""Options that a job would be refused for are reported by `check`, with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.cli import main

KAFKA = "'connector' = 'kafka', 'topic' = 't', 'format' = 'json'"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("'fields.a.kind' = 'zzz'", "'fields.a.kind' = 'zzz'; it can be random or sequence"),
        ("'fields.nosuch.min' = '1'", "'fields.nosuch.min' names no column; the columns are a"),
        ("'fields.a.min' = 'x'", "'fields.a.min' = 'x' is no number"),
        ("'fields.a.foo' = '1'", "'fields.a.foo' is unknown"),
        ("'fields.a.min' = '3000000000'", "'fields.a.min' = '3000000000' is more than the greatest number"),
        ("'fields.a.null-rate' = '1.5'", "'fields.a.null-rate' = '1.5' is not between 0 and 1"),
        ("'fields.a.kind' = 'sequence', 'fields.a.end' = '-1', 'fields.a.start' = '0'", "is more than the end, -1"),
        ("'rows-per-second' = '-5'", "option 'rows-per-second' cannot be '-5'"),
        ("'number-of-rows' = '0'", "option 'number-of-rows' cannot be '0'"),
    ],
)
def test_check_says_which_rows_cannot_be_made(
    option: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert check(f"CREATE TABLE t (a INT) WITH ('connector' = 'datagen',\n  {option});", tmp_path) == 2
    printed = capsys.readouterr().err
    assert expected in printed
    assert printed.startswith("p.sql:2:"), "the place of the option"


@pytest.mark.parametrize("length", ["-1", "1000001"])
@pytest.mark.parametrize("kind", ["STRING", "VARCHAR(5)", "BYTES"])
def test_check_says_how_long_a_text_can_be(kind: str, length: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    option = f"'fields.a.length' = '{length}'"
    assert check(f"CREATE TABLE t (a {kind}) WITH ('connector' = 'datagen',\n  {option});", tmp_path) == 2
    assert f"{option} is not between 0 and 1,000,000" in capsys.readouterr().err


def test_a_property_that_no_client_knows_is_noted_and_refuses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    options = (
        "'properties.max.pol.records' = '5',\n  'properties.company.audit.url' = 'x',\n"
        "  'properties.linger.ms' = '5', 'properties.group.id' = 'g', 'properties.bootstrap.servers' = 'b:9092',"
        " 'properties.partition.discovery.interval.ms' = '5', 'properties.security.protocol' = 'PLAINTEXT'"
    )
    assert check(f"CREATE TABLE t (a INT) WITH ({KAFKA},\n  {options});", tmp_path) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "no property" in line or "hint" in line]
    assert notes == [
        'note: p.sql:2:3: Kafka\'s clients have no property "max.pol.records": it has no effect',
        '  hint:   did you mean "max.poll.records"?',
        'note: p.sql:3:3: Kafka\'s clients have no property "company.audit.url": it has no effect',
    ]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("'properties.security.protocol' = 'FOO'", '2:3: security.protocol "FOO" is not known'),
        ("'properties.ssl.truststore.location' = '/x.jks'", '2:3: "ssl.truststore.location" has no effect'),
        ("'properties.sasl.nosuch' = 'x'", '2:3: the property "sasl.nosuch" is not supported'),
        (
            "'properties.sasl.mechanism' = 'GSSAPI', 'properties.security.protocol' = 'SASL_SSL'",
            '2:3: sasl.mechanism "GSSAPI" is not supported',
        ),
        (
            "'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.type' = 'JKS'",
            "2:43: a truststore of type JKS is not supported",
        ),
        (
            "'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.location' = '/x.jks'",
            "2:43: a truststore of type JKS is not supported",
        ),
        (
            "'properties.security.protocol' = 'SSL', 'properties.ssl.keystore.key' = 'secret'",
            "2:43: a client certificate needs its chain and its key",
        ),
    ],
)
def test_check_says_which_security_no_client_here_has(
    option: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert check(f"CREATE TABLE t (a INT) WITH ({KAFKA},\n  {option});", tmp_path) == 2
    assert expected in capsys.readouterr().err


def test_options_of_a_hint_are_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    hint = "/*+ OPTIONS('fields.a.kind' = 'zzz') */"
    text = f"CREATE TABLE t (a INT) WITH ('connector' = 'datagen'); EXPLAIN SELECT a FROM t {hint};"
    assert check(text, tmp_path) == 2
    assert "it can be random or sequence" in capsys.readouterr().err


def test_brokers_may_be_left_to_the_settings(tmp_path: Path):
    assert check(f"CREATE TABLE t (a INT) WITH ({KAFKA}); EXPLAIN SELECT a FROM t;", tmp_path) == 0


def check(text: str, folder: Path) -> int:
    """The exit code of `tailrace check`."""
    path = folder / "p.sql"
    path.write_text(text)
    return main(["check", str(path)])
