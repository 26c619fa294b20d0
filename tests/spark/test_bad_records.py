"""What cannot be read or computed, and what comes too late, goes its own way; the rest goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, messages

BASE = 1_700_000_000_000


def row(second: int, **columns: Any) -> bytes:
    """A good row, `second` seconds after the first, with the given changes (None leaves a column out)."""
    whole = {"id": second, "Name": "1", "parts": 2, "ts": BASE + second * 1000, **columns}
    return json.dumps({k: v for k, v in whole.items() if v is not None}).encode()


RECORDS = [
    *(row(s) for s in range(5)),
    b'{"id": 5, "Name"',
    row(6, parts="many"),
    b'{"id": 7, "Name": "\xff"}',
    row(8, id=None),
    row(9, parts=0),
    row(10, Name="one"),
    row(40),
    row(41),
    row(42),
    row(43),
    row(3, id=1003),  # its window is closed by the batch before
    row(45),
]
BATCH = 5

UNREADABLE = {5: "bad-json", 6: "wrong-type", 7: "bad-utf8", 8: "missing-not-null"}
"""The reason, by the offset of the record."""

PIPELINE = """
    CREATE TABLE t (
      id BIGINT NOT NULL, `Name` STRING, parts INT, ts BIGINT,
      et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et
    ) WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
            'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
    CREATE TABLE computed (id BIGINT, share INT, number INT)
      WITH ('connector' = 'kafka', 'topic' = '{computed}', 'format' = 'json');
    CREATE TABLE windows (w TIMESTAMP(3), n BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{windows}', 'format' = 'json');
    CREATE TABLE shown (id BIGINT, name STRING) WITH ('connector' = 'print', 'print-identifier' = 'seen');
    CREATE TABLE nothing (id BIGINT) WITH ('connector' = 'blackhole');
    CREATE TABLE numbers (n BIGINT, dice INT, word STRING)
      WITH ('connector' = 'datagen', 'rows-per-second' = '10', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1',
            'fields.n.end' = '25', 'fields.dice.min' = '1', 'fields.dice.max' = '6', 'fields.word.length' = '4');
    CREATE TABLE made (n BIGINT, dice INT, word STRING)
      WITH ('connector' = 'kafka', 'topic' = '{made}', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO computed SELECT id, 100 / parts, CAST(`Name` AS INT) FROM t;
      INSERT INTO windows SELECT window_start, COUNT(*)
        FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(et), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
      INSERT INTO shown SELECT id, `Name` FROM t WHERE id >= 42;
      INSERT INTO nothing SELECT id FROM t;
      INSERT INTO made SELECT * FROM numbers;
    END;
"""


def test_bad_records_and_late_rows_go_to_their_topics_while_the_rest_goes_on(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, computed, windows, made, dead, late = (
        make_topic(n, partitions=1) for n in ("source", "computed", "windows", "made", "dead", "late")
    )
    feed(kafka.bootstrap, source, ((0, record) for record in RECORDS))
    text = PIPELINE.format(source=source, computed=computed, windows=windows, made=made)
    topics = {"TOPICS__DEAD_LETTER": dead, "TOPICS__LATE": late}
    running = service(text, kafka.bootstrap, BATCH__ROWS=str(BATCH), **topics)
    running.start()
    assert running.wait() == 0, running.log[-4000:]

    good = [*range(5), 40, 41, 42, 43, 1003, 45]
    assert values(kafka, computed) == [{"id": i, "share": 50, "number": 1} for i in good]
    # The rows of second 9 and 10 cannot be divided or cast, but they count.
    assert sorted((w["w"], w["n"]) for w in values(kafka, windows)) == [
        ("2023-11-14 22:13:20", 6),
        ("2023-11-14 22:13:30", 1),
        ("2023-11-14 22:14:00", 5),
    ]
    assert shown(running) == ["seen> +I[42, 1]", "seen> +I[43, 1]", "seen> +I[45, 1]", "seen> +I[1003, 1]"]

    assert [r["n"] for r in values(kafka, made)] == list(range(1, 26))
    assert {r["dice"] for r in values(kafka, made)} <= set(range(1, 7))
    assert len({r["word"] for r in values(kafka, made)}) > 20

    letters = messages(kafka.bootstrap, dead)
    unreadable = [m for m in letters if b"tailrace-offset" in str(m.headers()).encode()]
    assert {int(header(m, "offset")): header(m, "reason") for m in unreadable} == UNREADABLE
    for m in unreadable:
        assert m.value() == RECORDS[int(header(m, "offset"))]
        assert (header(m, "topic"), header(m, "partition")) == (source, "0")
        assert header(m, "detail")
    uncomputed = {json.loads(m.value())["id"]: m for m in letters if m not in unreadable}
    assert sorted(uncomputed) == [9, 10]
    assert "zero" in header(uncomputed[9], "reason")
    assert "INT" in header(uncomputed[10], "reason")
    assert json.loads(uncomputed[10].value())["Name"] == "one"
    assert len(letters) == 6

    (too_late,) = messages(kafka.bootstrap, late)
    assert header(too_late, "reason") == "late"
    assert "et" in json.loads(too_late.value())


def values(kafka: Broker, topic: str) -> list[dict[str, Any]]:
    """The rows of a topic."""
    return [json.loads(m.value()) for m in messages(kafka.bootstrap, topic)]


def shown(service: ServiceProcess) -> list[str]:
    """What the print table has shown, in the order of its numbers."""
    lines = [line for line in service.log.splitlines() if line.startswith("seen> ")]
    return sorted(lines, key=lambda line: int(line.partition("[")[2].partition(",")[0]))


def header(message: Any, name: str) -> str:
    """The header of that name that the service has added."""
    return str(dict(message.headers())[f"tailrace-{name}"].decode())
