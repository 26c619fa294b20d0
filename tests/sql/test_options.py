"""WITH options: what they become, and what is said of those that are not known."""

from __future__ import annotations

import pytest

from service.plan.table import Bounded, Connector, Format, Startup
from service.sql.pipeline import PipelineErrors, read

BASE = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "b:9092",
    "format": "json",
}
PATTERN = {name: value for name, value in BASE.items() if name != "topic"}
AVRO = {"format": "avro-confluent", "avro-confluent.url": "http://r"}


def declared(options: dict[str, str], before: str = "") -> Connector:
    written = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    return (
        read(f"{before}CREATE TABLE t (a INT, b INT, PRIMARY KEY (a) NOT ENFORCED) WITH ({written})")
        .tables["t"]
        .connector
    )


def mistakes(options: dict[str, str]) -> list[str]:
    with pytest.raises(PipelineErrors) as raised:
        declared(options)
    return [str(m).split(": ", 1)[1] for m in raised.value.mistakes]


def test_the_defaults_are_those_of_flink():
    assert declared(BASE) == Connector(
        kind="kafka",
        topics=("t",),
        properties={"bootstrap.servers": "b:9092"},
        value_format=Format("json", {}),
        startup=Startup("group-offsets"),
        bounded=Bounded("unbounded"),
    )


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"topic": "a; b"}, "topics", ("a", "b")),
        ({"scan.startup.mode": "earliest-offset"}, "startup", Startup("earliest-offset")),
        (
            {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "12"},
            "startup",
            Startup("timestamp", timestamp=12),
        ),
        (
            {
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:0,offset:42;partition:1,offset:300",
            },
            "startup",
            Startup("specific-offsets", offsets=((0, 42), (1, 300))),
        ),
        ({"scan.bounded.mode": "latest-offset"}, "bounded", Bounded("latest-offset")),
        ({"scan.watermark.idle-timeout": "30 s"}, "idle_timeout", 30_000),
        ({"json.ignore-parse-errors": "true"}, "bad_input", "skip"),
        ({"tailrace.bad-input": "fail"}, "bad_input", "fail"),
        (
            {"json.timestamp-format.standard": "ISO-8601"},
            "value_format",
            Format("json", {"timestamp-format.standard": "ISO-8601"}),
        ),
        (
            {"key.format": "json", "key.fields": "a", "key.json.ignore-parse-errors": "false"},
            "key_format",
            Format("json", {"ignore-parse-errors": "false"}),
        ),
        ({"key.format": "json", "key.fields": "a;b"}, "key_fields", ("a", "b")),
        (
            {"key.format": "json", "key.fields": "a", "value.fields-include": "EXCEPT_KEY"},
            "value_fields_include",
            "EXCEPT_KEY",
        ),
        (
            {"format": "debezium-json", "debezium-json.schema-include": "true"},
            "value_format",
            Format("debezium-json", {"schema-include": "true"}),
        ),
        (
            {"sink.parallelism": "4", "sink.delivery-guarantee": "at-least-once"},
            "options",
            {"sink.delivery-guarantee": "at-least-once"},
        ),
        (
            {
                "format": "avro-confluent",
                "avro-confluent.schema-registry.url": "http://r:8081",
                "avro-confluent.basic-auth.user-info": "ann:hush",
                "avro-confluent.auto.register.schemas": "false",
            },
            "value_format",
            Format(
                "avro-confluent",
                {"auto.register.schemas": "false", "subject": "t-value"},
                {"url": "http://r:8081", "basic-auth.user-info": "ann:hush"},
            ),
        ),
        (
            {
                "key.format": "avro-confluent",
                "key.fields": "a",
                "key.avro-confluent.url": "http://r",
                "key.avro-confluent.subject": "mine",
            },
            "key_format",
            Format("avro-confluent", {"subject": "mine"}, {"url": "http://r"}),
        ),
        ({"sink.partitioner": "fixed"}, "options", {"sink.partitioner": "fixed"}),
        ({"properties.group.id": "g"}, "properties", {"bootstrap.servers": "b:9092", "group.id": "g"}),
    ],
)
def test_an_option_has_its_place(options: dict[str, str], field: str, value: object):
    assert getattr(declared({**BASE, **options}), field) == value


def test_an_upsert_table_is_read_from_the_start():
    found = declared(
        {
            **{k: v for k, v in BASE.items() if k != "format"},
            "connector": "upsert-kafka",
            "key.format": "json",
            "value.format": "json",
        }
    )
    assert found.startup == Startup("earliest-offset")


def test_the_idle_timeout_may_be_set_for_all_tables():
    assert declared(BASE, "SET 'table.exec.source.idle-timeout' = '2 min';").idle_timeout == 120_000


def test_datagen_keeps_its_own_options():
    found = declared({"connector": "datagen", "rows-per-second": "5", "fields.a.kind": "sequence"})
    assert found.options == {"rows-per-second": "5", "fields.a.kind": "sequence"}


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (
            {"scan.startup.mod": "x"},
            "connector 'kafka' has no option 'scan.startup.mod'\n  hint:   did you mean \"scan.startup.mode\"?",
        ),
        (
            {"scan.startup.mode": "earliest"},
            "option 'scan.startup.mode' cannot be 'earliest'\n  detail: it must be one of 'group-offsets', "
            "'earliest-offset', 'latest-offset', 'timestamp', 'specific-offsets'\n"
            "  hint:   did you mean 'earliest-offset'?",
        ),
        (
            {"rows-per-second": "5"},
            "connector 'kafka' has no option 'rows-per-second'\n  detail: it is an option of connector datagen",
        ),
        (
            {"debezium-json.schema-include": "true"},
            "connector 'kafka' has no option 'debezium-json.schema-include'\n"
            "  detail: it needs 'format' = 'debezium-json'",
        ),
        (
            {"json.ignore-errors": "true"},
            "connector 'kafka' has no option 'json.ignore-errors'\n"
            "  detail: format json has the options ignore-parse-errors, timestamp-format.standard, map-null-key.mode, "
            "map-null-key.literal, encode.decimal-as-plain-number, encode.ignore-null-fields, fail-on-missing-field, "
            'decode.json-parser.enabled\n  hint:   did you mean "json.ignore-parse-errors"?',
        ),
        (
            {"scan.watermark.alignment.group": "g"},
            "option 'scan.watermark.alignment.group' is not supported\n"
            "  detail: watermarks of different tables are not aligned",
        ),
        (
            {"scan.watermark.idle-timeout": "soon"},
            "option 'scan.watermark.idle-timeout' cannot be 'soon'\n"
            "  detail: it must be a duration such as '500 ms', '10 s', '5 min', '1 h' or '7 d'",
        ),
        (
            {"scan.startup.mode": "timestamp"},
            "option 'scan.startup.timestamp-millis' is missing\n  detail: 'scan.startup.mode' = 'timestamp' needs it",
        ),
        (
            {"scan.startup.timestamp-millis": "1"},
            "'scan.startup.timestamp-millis' has no effect here\n  hint:   set 'scan.startup.mode' = 'timestamp'",
        ),
        ({"key.format": "json"}, "option 'key.fields' is missing\n  detail: 'key.format' needs it"),
        ({"key.fields": "a"}, "option 'key.format' is missing\n  detail: 'key.fields' needs it"),
        (
            {"key.format": "json", "key.fields": "aa"},
            "'key.fields' names the column \"aa\", which does not exist\n  detail: the physical columns are a, b\n"
            '  hint:   did you mean "a"?',
        ),
        (
            {"key.format": "json", "key.fields": "a", "key.fields-prefix": "k_"},
            "key column \"a\" does not start with 'k_'\n  detail: 'key.fields-prefix' says that all of them do",
        ),
        (
            {"format": "protobuff"},
            "format 'protobuff' is not supported\n  detail: the formats are json, debezium-json, changelog-json, "
            "canal-json, maxwell-json, ogg-json, csv, json-registry, avro-confluent, debezium-avro-confluent, avro, "
            'protobuf, protobuf-confluent, raw\n  hint:   did you mean "protobuf"?',
        ),
        (
            {"format": "protobuf"},
            "option 'protobuf.schema' is missing\n"
            "  detail: format 'protobuf' reads and writes messages of a .proto file\n"
            "  hint:   set 'protobuf.schema' to its text, or 'protobuf.descriptor-set' to protoc's output",
        ),
        (
            {"format": "protobuf", "protobuf.schema": "message M {"},
            "option 'protobuf.schema' cannot be 'message M {'\n"
            "  detail: it must be the text of a .proto file (schema.proto:1:12: Reached end of input in message "
            "definition (missing '}').)",
        ),
        (
            {"format": "protobuf", "protobuf.descriptor-set": "/nowhere"},
            "option 'protobuf.descriptor-set' cannot be '/nowhere'\n"
            "  detail: it must be a descriptor file written by protoc ([Errno 2] No such file or directory: "
            "'/nowhere')",
        ),
        (
            {"format": "protobuf", "protobuf.schema": 'syntax = "proto3"; message M { string a = 1; int64 b = 2; }'},
            "the table and its message do not fit\n"
            '  detail: column "a" is INT, but its field is string\n'
            "  hint:   columns have the names of the message's fields; docs/formats.md says which types fit",
        ),
        (
            {
                "format": "protobuf-confluent",
                "protobuf-confluent.url": "http://registry",
                "protobuf-confluent.message-name": "M",
            },
            "option 'protobuf-confluent.schema' is missing\n"
            "  detail: 'protobuf-confluent.message-name' names one of its messages",
        ),
        (
            {
                "format": "protobuf",
                "protobuf.schema": 'syntax = "proto3"; message M { int32 a = 1; int32 b = 2; }',
                "protobuf.message-name": "M",
                "protobuf.message-class-name": "M",
            },
            "'protobuf.message-name' and 'protobuf.message-class-name' are both given\n"
            "  detail: they are two ways of saying the same; keep one",
        ),
        (
            {"format": "avro-confluent"},
            "option 'avro-confluent.url' is missing\n"
            "  detail: format 'avro-confluent' reads and registers schemas in a schema registry\n"
            "  hint:   set 'avro-confluent.url' = 'http://...'",
        ),
        (
            {**AVRO, "avro-confluent.schema-registry.url": "http://r"},
            "'avro-confluent.url' and 'avro-confluent.schema-registry.url' are both given\n"
            "  detail: they are two names of one option",
        ),
        (
            {"format": "avro-confluent", "avro-confluent.url": "http://ann:hush@r"},
            "option 'avro-confluent.url' cannot be 'http://ann:hush@r'\n  detail: it must be a URL without user and "
            "password: set these in 'basic-auth.user-info'",
        ),
        (
            {"format": "avro-confluent", "avro-confluent.url": "localhost:8081"},
            "option 'avro-confluent.url' cannot be 'localhost:8081'\n  detail: it must be 'http://host:8081' or "
            "'https://host', or several separated by commas",
        ),
        (
            {**AVRO, "avro-confluent.basic-auth.user-info": "a:b", "avro-confluent.bearer-auth.token": "c"},
            "'avro-confluent.basic-auth.user-info' and 'avro-confluent.bearer-auth.token' are both given\n"
            "  detail: a login uses a password or a token; keep one",
        ),
        (
            {**AVRO, "avro-confluent.basic-auth.credentials-source": "USER_INFO"},
            "option 'avro-confluent.basic-auth.user-info' is missing\n"
            "  detail: 'avro-confluent.basic-auth.credentials-source' needs it",
        ),
        (
            {**AVRO, "avro-confluent.ssl.truststore.location": "/etc/trust.jks"},
            "option 'avro-confluent.ssl.truststore.location' cannot be '/etc/trust.jks'\n  detail: it must be a PEM "
            "file (keytool -importkeystore and openssl pkcs12 make one of a JKS or PKCS #12 file)",
        ),
        (
            {**AVRO, "avro-confluent.schema": '{"type": "record"}'},
            "option 'avro-confluent.schema' cannot be '{\"type\": \"record\"}'\n  detail: it must be an Avro schema in "
            "JSON (a part of the schema lacks 'name')",
        ),
        (
            {"topic-pattern": "t.*"},
            "'topic' and 'topic-pattern' are both given\n"
            "  detail: a table reads the named topics or those that match a pattern, not both",
        ),
        (
            {"sink.partitioner": "com.Mine"},
            "option 'sink.partitioner' cannot be 'com.Mine'"
            "\n  detail: it must be one of 'default', 'fixed', 'round-robin'",
        ),
        (
            {"value.format": "json"},
            "'format' and 'value.format' are both given\n  detail: they are two names of the format of values",
        ),
        (
            {"connector": "kafk"},
            "connector 'kafk' is not supported\n  detail: the connectors are kafka, upsert-kafka, datagen, jdbc, "
            'print, blackhole\n  hint:   did you mean "kafka"?',
        ),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], mistake: str):
    assert mistakes({**BASE, **options}) == [mistake]


@pytest.mark.parametrize(
    ("connector", "hint"),
    [
        ("filesystem", "move the rows through a topic, with Kafka Connect for example"),
        ("faker", "write 'connector' = 'datagen'"),
        *(
            (
                f"{database}-cdc",
                "write the changes to a topic, with Debezium for example, and read it with 'format' = 'debezium-json'",
            )
            for database in ("mysql", "postgres", "oracle")
        ),
    ],
)
def test_a_connector_of_flink_that_is_not_here_is_refused_with_what_to_do(connector: str, hint: str):
    assert mistakes({**BASE, "connector": connector}) == [
        f"connector '{connector}' is not supported\n"
        f"  detail: it is a Flink connector that Tailrace does not have\n  hint:   {hint}"
    ]


@pytest.mark.parametrize("character", ["\\", "\\\\", "^", "\\t", "\\u0001"])
def test_a_character_of_csv_may_be_written_as_in_java(character: str):
    table = declared({**BASE, "format": "csv", "csv.escape-character": character})
    assert table.value_format == Format("csv", {"escape-character": character})


@pytest.mark.parametrize("text", ["ab", "\\x", "\\u00", "\\\\\\"])
def test_what_is_no_character_of_csv_is_refused(text: str):
    (mistake,) = mistakes({**BASE, "format": "csv", "csv.escape-character": text})
    assert "one character, such as ',' or '\\t'" in mistake


def test_all_that_is_missing_is_listed():
    assert mistakes({"connector": "kafka"}) == [
        f"option '{key}' is missing\n  detail: connector 'kafka' needs it" for key in ("topic", "format")
    ]


def test_a_pattern_stands_in_place_of_topics():
    connector = declared({**PATTERN, "topic-pattern": r"orders\.(eu|us)"})
    assert (connector.topics, connector.topic_pattern) == ((), r"orders\.(eu|us)")


def test_a_pattern_that_cannot_be_read_is_refused():
    assert mistakes({**PATTERN, "topic-pattern": "orders(.*"}) == [
        "option 'topic-pattern' cannot be 'orders(.*'\n  detail: it must be a Java regular expression (missing ), "
        "unterminated subpattern at position 6)"
    ]


def test_a_table_with_a_pattern_is_not_written_to():
    with pytest.raises(PipelineErrors) as raised:
        read(
            "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic-pattern' = 't.*', 'format' = 'json');\n"
            "INSERT INTO t VALUES (1);"
        )
    assert [str(m).split(":", 1)[1] for m in raised.value.mistakes] == [
        '2:13: table "t" cannot be written to\n'
        "  detail: 'topic-pattern' says what is read; a sink has one topic\n"
        "  hint:   declare another table with 'topic' for what is written"
    ]


def test_it_is_noted_that_topics_are_not_looked_for_in_between():
    options = {**PATTERN, "topic-pattern": "t.*", "scan.topic-partition-discovery.interval": "5 min"}
    written = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    assert [note.primary for note in read(f"CREATE TABLE t (a INT) WITH ({written})").notes] == [
        "'scan.topic-partition-discovery.interval' has no effect on topics"
    ]
