"""A checkpoint belongs to the clusters and topics that it was made with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.deployment.kafka_identity import KafkaIdentity, agree_on_kafka
from service.kafka.errors import KafkaConfigError
from tests.kept_files import KeptFiles

NOW = KafkaIdentity({"table a": "c1", "table b (written)": "c2"}, {"c1/in": "i1", "c2/out": "i2"}, "markers")


def made() -> KeptFiles:
    kept = KeptFiles()
    agree_on_kafka(kept, NOW)
    return kept


def test_what_is_as_it_was_is_taken():
    kept = made()
    before = dict(kept.files)
    agree_on_kafka(kept, NOW)
    assert kept.files == before


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (replace(NOW, markers="other"), "the marker topic of a checkpoint cannot be another one"),
        (replace(NOW, clusters={**NOW.clusters, "table a": "c9"}), "table a is on another Kafka cluster than before"),
        (replace(NOW, topics={**NOW.topics, "c1/in": "i9"}), "the topic in was deleted and recreated"),
        (replace(NOW, topics={**NOW.topics, "c2/out": "i9"}), "the topic out was deleted and recreated"),
    ],
)
def test_what_is_another_one_is_refused_and_nothing_is_written(now: KafkaIdentity, message: str):
    kept = made()
    before = dict(kept.files)
    with pytest.raises(KafkaConfigError, match=message):
        agree_on_kafka(kept, now)
    assert kept.files == before


def test_ids_that_brokers_did_not_report_before_are_learnt():
    kept = KeptFiles()
    agree_on_kafka(kept, replace(NOW, topics={}))
    agree_on_kafka(kept, NOW)
    with pytest.raises(KafkaConfigError):
        agree_on_kafka(kept, replace(NOW, topics={"c1/in": "i9"}))
