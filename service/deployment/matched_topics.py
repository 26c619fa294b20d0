"""The topics of a table with a 'topic-pattern': those that match when the service starts.

Law: a checkpoint remembers the topics of each table. A new topic is read from its first record, whatever
'scan.startup.mode' says, as in Flink. A topic that is gone stops the start, like a named topic that does not exist. A
bounded table fixes its topics together with its end offsets, and reads no others later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from service.deployment.bounds import Store
from service.deployment.clusters import Address
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaConfigError
from service.plan.program import Program, Source
from service.plan.topic_pattern import topic_pattern
from service.settings import Topics


def match_topics(
    program: Program,
    sources: Mapping[int, Address],
    outputs: Mapping[int, Address],
    own: Topics,
    connect: Callable[[Mapping[str, str]], Cluster] = Cluster,
) -> Program:
    """Return `program` with the topics, in order, of each source that has a pattern.

    Kafka's internal topics and those of the service itself, `own`, match no pattern. Raises KafkaConfigError for all
    tables of which no topic matches, or one to which the job itself writes.
    """
    if not any(source.table.connector.topic_pattern for source in program.sources):
        return program
    written = {
        (connect(outputs[output.id].librdkafka).identifier(), topic)
        for output in program.outputs
        if output.id in outputs
        for topic in output.table.connector.topics
    }
    troubles: list[str] = []
    matched: list[Source] = []
    for source in program.sources:
        text = source.table.connector.topic_pattern
        if not text:
            matched.append(source)
            continue
        pattern, cluster = topic_pattern(text), connect(sources[source.id].librdkafka)
        found = [name for name in cluster.matching(pattern) if name not in (own.dead_letter, own.late, own.markers)]
        here = cluster.identifier()
        looped = sorted({topic for place, topic in written if place == here and pattern.fullmatch(topic)})
        if looped:
            troubles.append(
                f"table {source.table.name}: the job writes to {', '.join(looped)}, which its 'topic-pattern' matches\n"
                f"  detail: the pattern is '{text}': the job would read what it writes\n"
                "  hint:   exclude such topics with a look-ahead, as '(?!totals$).*' does, or give them other names"
            )
        elif not found:
            troubles.append(
                f"table {source.table.name}: no topic matches its 'topic-pattern'\n"
                f"  detail: the pattern is '{text}', asked at {sources[source.id].librdkafka['bootstrap.servers']}\n"
                "  hint:   the whole name must match; check the pattern, and the permission to DESCRIBE the topics"
            )
        matched.append(_reading(source, tuple(found)))
    if troubles:
        raise KafkaConfigError("\n".join(troubles))
    return replace(program, sources=tuple(matched))


@dataclass(frozen=True, slots=True)
class MatchedTopics:
    """A program with the topics that are read from now on, and the new ones by table: those that are `added`, and those
    that are `waiting` for the next start."""

    program: Program
    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def agree_on_topics(
    store: Store, program: Program, bounded: frozenset[int], *, planned: bool, done: bool
) -> MatchedTopics:
    """Return the topics that are read of those that match now, and store them.

    `planned` says whether a batch was ever planned in the checkpoint, `done` whether one was done: topics that appear
    before the first one is done wait for the next start. Raises KafkaConfigError if a topic is gone that the checkpoint
    knows.
    """
    known: dict[str, list[str]] = store.read("topics") or {}
    agreed: dict[str, list[str]] = dict(known)
    added: dict[str, tuple[str, ...]] = {}
    waiting: dict[str, tuple[str, ...]] = {}
    for source in program.sources:
        if not source.table.connector.topic_pattern:
            continue
        now, name = source.table.connector.topics, str(source.id)
        before, ends = known.get(name, []), source.id in bounded
        if not before or not (planned or ends):
            agreed[name] = list(now)
            continue
        gone = sorted(set(before) - set(now))
        if gone:
            raise KafkaConfigError(
                f"table {source.table.name}: {', '.join(gone)} no longer exists",
                f"the checkpoint knows offsets and rows of {'these topics' if len(gone) > 1 else 'this topic'}, which"
                f" matched '{source.table.connector.topic_pattern}'",
                "check the permission to DESCRIBE; or set TAILRACE_CHECKPOINT to a new folder to start over",
            )
        new = sorted(set(now) - set(before))
        if not new or ends:
            continue
        if done:
            agreed[name] = sorted(now)
            added[source.table.name] = tuple(new)
        else:
            waiting[source.table.name] = tuple(new)
    if agreed != known:
        store.write("topics", agreed)
    sources = tuple(_reading(s, tuple(agreed[str(s.id)])) if str(s.id) in agreed else s for s in program.sources)
    return MatchedTopics(replace(program, sources=sources), added, waiting)


def _reading(source: Source, topics: tuple[str, ...]) -> Source:
    connector = replace(source.table.connector, topics=topics)
    return replace(source, table=replace(source.table, connector=connector))
