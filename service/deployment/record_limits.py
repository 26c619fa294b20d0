"""The largest allowed record of each output, by the settings of its producer and its topic.

Law: of a batch that is done again, no record fits that did not fit at first. A row that is too large is a dead letter,
and dead letters may go to another cluster, in a transaction that is committed after all others of its task
(`service.spark.query.transactions`). Were such a row to fit when the batch is done again, the sink would not take it,
its part being committed, and the dead letters would not have it. So until a batch that had begun is done, the smaller
of what was known and what is true now counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from service.deployment.bounds import Store
from service.deployment.deployment import Deployment
from service.deployment.writers import LARGEST
from service.formats.record_size import RecordLimit, least
from service.kafka.admin import RECORD_BYTES, Cluster
from service.kafka.errors import Refused
from service.kafka.writer.producer import BATCH_BYTES, DEFAULTS
from service.kafka.writer.writer_settings import WriterSettings
from service.record_packing import OVERHEAD

ROOMS = "rooms"
"""The small file with the rooms that the running batches have, by writer and topic."""

_CODEC, _BATCH = "compression.type", "batch.size"

Rooms = Mapping[str, RecordLimit]
"""By writer and topic."""


def limits_now(deployment: Deployment) -> dict[str, RecordLimit]:
    """Ask Kafka what the topics take that the job writes, those of dead letters and late rows among them. Raises
    KafkaFailure."""
    found: dict[str, RecordLimit] = {}
    for key in dict.fromkeys([*_sinks(deployment), *_side_keys(deployment)]):
        number, _, topic = key.partition("/")
        kafka = deployment.writers.addresses[int(number)].librdkafka
        limit, codec = kafka.get(LARGEST, ""), kafka.get(_CODEC, DEFAULTS[_CODEC])
        found[key] = RecordLimit(
            topic=topic,
            sent=int(limit) if limit.isdigit() else RECORD_BYTES,
            stored=Cluster(kafka).largest_record(topic),
            codec=None if codec == "none" else codec,
        )
    return found


class Refusals:
    """The refusals of topics that this process has met, by writer and topic."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}
        self._batches: dict[str, int] = {}

    def learn(self, deployment: Deployment, rooms: Rooms, refusals: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Learn of what was refused of a batch with these rooms (`Refused`). Return the topics of which something
        was learned, with the bytes that no record or batch of records has from now on."""
        learned: dict[str, int] = {}
        for key, room in rooms.items():
            refused = Refused(*refusals.get(key, ()))
            if refused == Refused():
                continue
            half = refused.together // 2
            if key in _side_keys(deployment):
                half = side_bytes(deployment, rooms) // 2
            if key in _sinks(deployment) and refused.alone and (room.taken is None or refused.alone <= room.taken):
                self._refused[key] = learned[room.topic] = refused.alone
            if half and (room.batch is None or half < room.batch):
                self._batches[key] = half
                learned.setdefault(room.topic, half)
        return learned

    def applied(self, store: Store, now: Rooms) -> dict[str, RecordLimit]:
        """Return the rooms with what was learned. Of batches of records it is known from earlier processes, too:
        smaller ones make no record unfit. What Kafka says itself counts instead, if that is less."""
        known = _known(store)
        found = {}
        for key, room in now.items():
            refused, batch = self._refused.get(key), self._batches.get(key)
            if room.stored is None:
                batch = least(batch, known[key].batch if key in known else None)
            if refused is not None and room.stored is not None and room.stored < refused:
                refused = None
            found[key] = replace(room, refused=refused, batch=batch)
        return found


def side_bytes(deployment: Deployment, rooms: Rooms) -> int:
    """Return the size that dead letters and late rows are cut to."""
    mine = [room for key, room in rooms.items() if key in _side_keys(deployment)]
    stored = [None if room.stored is None else room.stored - OVERHEAD for room in mine]
    return least(deployment.side_bytes, *stored, *(room.batch for room in mine)) or 1


def agree_on_rooms(store: Store, now: Rooms, *, begun: bool) -> dict[str, RecordLimit]:
    """Return what counts from here on, and remember it; `begun` says that a batch is planned and not done."""
    known = _known(store)
    agreed = {key: room.smaller(known[key]) if begun and key in known else room for key, room in now.items()}
    if agreed != known:
        store.write(ROOMS, {key: asdict(room) for key, room in agreed.items()})
    return agreed


def with_small_batches(settings: WriterSettings, number: int, rooms: Rooms, side: int | None) -> WriterSettings:
    """Return the settings of writer `number` with batches that each of its topics takes; `side` is what dead letters
    and late rows are cut to, if it writes these. A batch of small records is refused like one large record."""
    mine = [room for key, room in rooms.items() if key.startswith(f"{number}/")]
    known = [side, *(room.taken for room in mine), *(room.batch for room in mine)]
    most = (least(*known) or BATCH_BYTES) - OVERHEAD
    configured = int(settings.kafka.get(_BATCH, BATCH_BYTES))
    return settings if configured <= most else replace(settings, kafka={**settings.kafka, _BATCH: str(max(1, most))})


def _known(store: Store) -> dict[str, RecordLimit]:
    return {key: RecordLimit(**limit) for key, limit in (store.read(ROOMS) or {}).items()}


def _sinks(deployment: Deployment) -> list[str]:
    """Writer and topic of each output that goes to Kafka."""
    topics = {output.id: output.table.connector.topics for output in deployment.program.outputs}
    return [f"{number}/{topics[output][0]}" for output, number in deployment.writers.of_output.items()]


def _side_keys(deployment: Deployment) -> list[str]:
    """Those of dead letters and late rows."""
    side, topics = deployment.writers.side, deployment.settings.topics
    return [] if side is None else [f"{side}/{topic}" for topic in (topics.dead_letter, topics.late) if topic]
