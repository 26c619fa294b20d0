"""The largest allowed record of each output, by the settings of its producer and its topic.

Law: when a batch is repeated, a record that did not fit at first does not fit either.

A row that is too large is a dead letter, and dead letters may go to another cluster, in a transaction that is committed
after all others of its task (`service.spark.query.transactions`). If such a row did fit when the batch is repeated, it
would be lost: the sink, whose part is committed, would not take it, and the dead letters would not have it. So the
smaller of the stored and the current limit is valid until a batch that had begun is done.
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
"""The small file with the limits of the running batches, by writer and topic."""

_CODEC, _BATCH = "compression.type", "batch.size"

Rooms = Mapping[str, RecordLimit]
"""By writer and topic."""


def limits_now(deployment: Deployment) -> dict[str, RecordLimit]:
    """Return the limits of the topics that the job writes, those of dead letters and late rows among them. Raises
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
        """Note the refused records of a batch that had these limits (`Refused`). Return the topics with a new limit,
        and the bytes that their records or batches of records stay below from now on."""
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
        """Return the limits with what was learned from refusals. A limit of batches of records holds for later
        processes, too, since smaller ones make no record unfit. A smaller limit of Kafka itself takes precedence."""
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
    """Return the size to which dead letters and late rows are cut."""
    mine = [room for key, room in rooms.items() if key in _side_keys(deployment)]
    stored = [None if room.stored is None else room.stored - OVERHEAD for room in mine]
    return least(deployment.side_bytes, *stored, *(room.batch for room in mine)) or 1


def agree_on_rooms(store: Store, now: Rooms, *, begun: bool) -> dict[str, RecordLimit]:
    """Return the limits that are valid from now on, and store them; `begun` says that a batch is planned and not
    done."""
    known = _known(store)
    agreed = {key: room.smaller(known[key]) if begun and key in known else room for key, room in now.items()}
    if agreed != known:
        store.write(ROOMS, {key: asdict(room) for key, room in agreed.items()})
    return agreed


def with_small_batches(settings: WriterSettings, number: int, rooms: Rooms, side: int | None) -> WriterSettings:
    """Return the settings of writer `number`, with batches of records that each of its topics accepts. A batch of small
    records is refused like one large record. `side` is the size that dead letters and late rows are cut to, if this
    writer writes them."""
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
