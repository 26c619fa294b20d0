"""The Kafka that a checkpoint belongs to: clusters, topics by their ids, and the topic of the markers.

Offsets are valid in one topic of one cluster only. A topic that was deleted and created again has other offsets, and so
has a mirror in another cluster. A marker that is looked up in another topic is not found, so its batch would be written
twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.deployment.bounds import Store
from service.kafka.errors import KafkaConfigError

_AFRESH = "or set TAILRACE_CHECKPOINT to a new folder to start over"


@dataclass(frozen=True, slots=True)
class KafkaIdentity:
    """The cluster id of each table (by its name in messages), the id of each topic (as 'cluster/topic', if the brokers
    have such ids), and the name of the marker topic."""

    clusters: Mapping[str, str]
    topics: Mapping[str, str]
    markers: str


UNKNOWN = KafkaIdentity({}, {}, "")
"""The identity before anyone has asked Kafka."""


def agree_on_kafka(store: Store, now: KafkaIdentity) -> None:
    """Store what the checkpoint belongs to. Raises KafkaConfigError if it was made with another Kafka."""
    known = store.read("kafka")
    if known is None:
        known = {"clusters": {}, "topics": {}, "markers": now.markers}
    if known["markers"] != now.markers:
        raise KafkaConfigError(
            "the marker topic of a checkpoint cannot be another one",
            f"it was made with TAILRACE_TOPICS__MARKERS={known['markers']}, not {now.markers}: what was written last"
            " is in that topic",
            f"set it back, {_AFRESH}",
        )
    for name, cluster in now.clusters.items():
        if known["clusters"].get(name, cluster) != cluster:
            raise KafkaConfigError(
                f"{name} is on another Kafka cluster than before",
                f"the checkpoint was made with cluster {known['clusters'][name]}, this is {cluster}: offsets and"
                " transactions of one are meaningless in the other",
                f"use the brokers of the first, {_AFRESH}",
            )
    for topic, identifier in now.topics.items():
        if known["topics"].get(topic, identifier) != identifier:
            raise KafkaConfigError(
                f"the topic {topic.partition('/')[2]} was deleted and recreated since the checkpoint was created",
                f"its id was {known['topics'][topic]} and is {identifier}: the checkpoint has offsets and rows of the"
                " deleted topic",
                _AFRESH.removeprefix("or "),
            )
    wanted = {
        "clusters": {**known["clusters"], **now.clusters},
        "topics": {**known["topics"], **now.topics},
        "markers": now.markers,
    }
    if store.read("kafka") != wanted:
        store.write("kafka", wanted)
