"""The archive of the Java classes that a broker loads: parsed and verified, for the JVM to map into memory.

`python -m service.kafka.local_broker.class_archive` makes it beside Kafka's archives, from the classes of a broker that
has had a transaction. It halves the processor time of a start. It is only a copy: a JVM that cannot use it loads the
classes as usual.
"""

from __future__ import annotations

import sys

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from service.archives import ensure, load
from service.archives.class_archive import CREATE, put
from service.host.machine import MachineError
from service.kafka.local_broker.broker import EmbeddedKafka
from service.kafka.local_broker.jvm_options import QUICK_START, broker_classes

_PATIENCE = 60.0
"""Seconds that an answer of the broker may take on a busy machine."""


def main() -> int:
    """Make the archive for this Java and these archives of Kafka, if it is missing. Return the exit code."""
    target = broker_classes(ensure(load("kafka")))
    if target.exists():
        return 0
    print("making an archive of the broker's Java classes (once; some seconds)", file=sys.stderr)
    part = target.with_suffix(".part")
    trouble = ""
    try:
        with EmbeddedKafka(jvm_options=(*QUICK_START, f"{CREATE}{part}")) as kafka:
            _use(kafka.bootstrap)
            kafka.stop()
    except (MachineError, KafkaException) as error:
        trouble = f"({error})"
    put(part, target, trouble)
    return 0


def _use(bootstrap: str) -> None:
    """Make a topic, and write to it in a transaction."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("rows", 1, 1)])["rows"].result(_PATIENCE)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "rows", "log_level": 3})
    producer.init_transactions(_PATIENCE)
    producer.begin_transaction()
    producer.produce("rows", b"row")
    producer.commit_transaction(_PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
