"""How large a record of each output may be, by the settings of its producer and its topic.

Law: of a batch that is done again, no record fits that did not fit at first. A row that is too large is a dead letter,
and dead letters may go to another cluster, in a transaction that is committed after all others of its task
(`service.spark.query.transactions`). Were such a row to fit when the batch is done again, the sink would not take it,
its part being committed, and the dead letters would not have it. So until a batch that had begun is done, the smaller
of what was known and what is true now counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from service.deployment.bounds import Store
from service.deployment.deployment import Deployment
from service.deployment.writers import LARGEST
from service.formats.record_size import OVERHEAD, RecordRoom
from service.kafka.admin import RECORD_BYTES, Cluster
from service.kafka.writer.producer import BATCH_BYTES, DEFAULTS
from service.kafka.writer.writer_settings import WriterSettings

ROOMS = "rooms"
"""The small file with the rooms that the running batches have, by writer and topic."""

_CODEC, _BATCH = "compression.type", "batch.size"

Rooms = Mapping[str, RecordRoom]
"""By writer and topic."""


def rooms_now(deployment: Deployment) -> dict[str, RecordRoom]:
    """Ask Kafka what the topics take that the job writes. Raises KafkaFailure."""
    found: dict[str, RecordRoom] = {}
    for output, number in deployment.writers.of_output.items():
        kafka = deployment.writers.addresses[number].librdkafka
        [topic] = next(o.table.connector.topics for o in deployment.program.outputs if o.id == output)
        told, codec = kafka.get(LARGEST, ""), kafka.get(_CODEC, DEFAULTS[_CODEC])
        found[f"{number}/{topic}"] = RecordRoom(
            topic=topic,
            sent=int(told) if told.isdigit() else RECORD_BYTES,
            stored=Cluster(kafka).largest_record(topic),
            codec=None if codec == "none" else codec,
        )
    return found


def agree_on_rooms(store: Store, now: Rooms, *, begun: bool) -> dict[str, RecordRoom]:
    """Return what counts from here on, and remember it; `begun` says that a batch is planned and not done."""
    known = {key: RecordRoom(**told) for key, told in (store.read(ROOMS) or {}).items()}
    agreed = {key: room.smaller(known[key]) if begun and key in known else room for key, room in now.items()}
    if agreed != known:
        store.write(ROOMS, {key: asdict(room) for key, room in agreed.items()})
    return agreed


def with_small_batches(settings: WriterSettings, number: int, rooms: Rooms, side_bytes: int | None) -> WriterSettings:
    """Return the settings of writer `number` with batches that each of its topics takes; `side_bytes` is what those of
    dead letters and late rows take, if it writes these. A batch of small records is refused like one large record."""
    taken = [room.stored for key, room in rooms.items() if key.startswith(f"{number}/") and room.stored is not None]
    least = min([*taken, *([] if side_bytes is None else [side_bytes])], default=BATCH_BYTES) - OVERHEAD
    told = int(settings.kafka.get(_BATCH, BATCH_BYTES))
    return settings if told <= least else replace(settings, kafka={**settings.kafka, _BATCH: str(max(1, least))})
