"""Which topics a pattern means, when the service starts and when it starts again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import pytest

from service.deployment.clusters import Address
from service.deployment.matched_topics import agree_on_topics, match_topics
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaConfigError
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.settings import Topics
from service.sql.pipeline import read
from tests.kept_files import KeptFiles

A, B = (Address(librdkafka={"bootstrap.servers": name}, java={}) for name in ("a", "b"))


def program(pattern: str, sink: str = "out", more: str = "") -> Program:
    text = f"""
        CREATE TABLE t (k STRING) WITH ('connector' = 'kafka', 'topic-pattern' = '{pattern}', 'format' = 'json'{more});
        CREATE TABLE o (k STRING) WITH ('connector' = 'kafka', 'topic' = '{sink}', 'format' = 'json');
        INSERT INTO o SELECT k FROM t;
    """
    return compile_job(read(text).jobs[0])


def matched(asked: Program, *topics: str, written: Address = A) -> tuple[str, ...]:
    """What is read where clusters a and b have these topics."""

    class Here:
        def __init__(self, name: str) -> None:
            self.name = name

        def matching(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
            return tuple(sorted(filter(pattern.fullmatch, topics)))

        def identifier(self) -> str:
            return self.name

    def connect(kafka: Mapping[str, str]) -> Cluster:
        return cast(Cluster, Here(kafka["bootstrap.servers"]))

    source, output = asked.sources[0], asked.outputs[0]
    found = match_topics(asked, {source.id: A}, {output.id: written}, Topics(late="tailrace.late"), connect)
    return found.sources[0].table.connector.topics


def test_the_topics_of_the_service_itself_match_no_pattern():
    own = ("tailrace.dead-letter", "tailrace.late", "tailrace.markers")
    assert matched(program(".*rs"), "users", "orders", "order", *own) == ("orders", "users")
    assert matched(program("t.*"), "tx", *own) == ("tx",)


def test_a_pattern_without_a_topic_stops_the_start():
    with pytest.raises(KafkaConfigError) as raised:
        matched(program("orders-.*"), "orders", "other-orders-1")
    assert str(raised.value) == (
        "table t: no topic matches its 'topic-pattern'\n"
        "  detail: the pattern is 'orders-.*', asked at a\n"
        "  hint:   the whole name must match; check the pattern, and the permission to DESCRIBE the topics"
    )


def test_a_job_does_not_read_what_it_writes():
    with pytest.raises(KafkaConfigError, match="the job writes to orders-out, which its 'topic-pattern' matches"):
        matched(program("orders.*", sink="orders-out"), "orders")
    assert matched(program("orders.*", sink="orders-out"), "orders", "orders-out", written=B) == (
        "orders",
        "orders-out",
    )


def test_a_fingerprint_knows_the_pattern_and_not_the_topics():
    asked = program("t.*")
    assert program("t.*", more=", 'scan.startup.mode' = 'earliest-offset'").fingerprint == asked.fingerprint
    assert program("u.*").fingerprint != asked.fingerprint


BOUNDED = ", 'scan.bounded.mode' = 'latest-offset'"


@pytest.mark.parametrize(
    ("before", "now", "planned", "done", "bounded", "reads", "added", "waiting"),
    [
        ("", "x y", False, False, False, "x y", "", ""),
        ("x y", "x y", True, True, False, "x y", "", ""),
        ("x y", "w x y z", True, True, False, "w x y z", "w z", ""),
        # Nothing was planned yet: it is as if the checkpoint were new.
        ("x y", "y z", False, False, False, "y z", "", ""),
        # The first batch is planned: what it reads is decided, and so is where it starts.
        ("x y", "x y z", True, False, False, "x y", "", "z"),
        ("x y", "x y z", True, True, True, "x y", "", ""),
        ("x y", "x y z", False, False, True, "x y", "", ""),
    ],
)
def test_a_checkpoint_goes_on_with_its_topics_and_those_that_are_new(
    before: str, now: str, planned: bool, done: bool, bounded: bool, reads: str, added: str, waiting: str
):
    asked = program("[w-z]", more=BOUNDED if bounded else "")
    source = asked.sources[0].id
    kept = KeptFiles({"topics": {str(source): before.split()}} if before else {})
    ends = frozenset({source} if bounded else ())
    for first in (True, False):
        resolved = with_topics(asked, now)
        found = agree_on_topics(kept, resolved, ends, planned=planned, done=done)
        assert found.program.sources[0].table.connector.topics == tuple(reads.split())
        assert found.added == ({"t": tuple(added.split())} if added and first else {})
        assert found.waiting == ({"t": tuple(waiting.split())} if waiting else {})
    assert kept.files == {"topics": {str(source): reads.split()}}


@pytest.mark.parametrize("done", [True, False])
def test_a_topic_that_is_gone_stops_the_start(done: bool):
    asked = program("[w-z]")
    kept = KeptFiles({"topics": {str(asked.sources[0].id): ["x", "y"]}})
    with pytest.raises(KafkaConfigError) as raised:
        agree_on_topics(kept, with_topics(asked, "y z"), frozenset(), planned=True, done=done)
    assert str(raised.value) == (
        "table t: x no longer exists\n"
        "  detail: the checkpoint knows offsets and rows of this topic, which matched '[w-z]'\n"
        "  hint:   check the permission to DESCRIBE; or set TAILRACE_CHECKPOINT to a new folder to start over"
    )


def with_topics(asked: Program, topics: str) -> Program:
    class Here:
        def matching(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
            return tuple(topics.split())

        def identifier(self) -> str:
            return "a"

    return match_topics(asked, {asked.sources[0].id: A}, {}, Topics(), lambda _: cast(Cluster, Here()))
