"""Makes the specification that is sent to the workers from a deployment and its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.small_files import PLAN_NUMBER
from service.deployment.deployment import Deployment
from service.deployment.record_limits import Rooms, side_bytes, with_small_batches
from service.deployment.writers import agree_on_writers
from service.formats.record_size import RecordLimit
from service.formats.registry import decoder, encoder
from service.kafka.writer.writer_settings import WriterSettings
from service.plan.program import Output, discarding
from service.runtime.layout import Layout
from service.spark.driver.cluster_mode import is_local
from service.spark.query.job_spec import JobSpec
from service.spark.supervision.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms that checkpoint and deployment have agreed on for the next start, as the fields of `JobSpec`; `rooms`
    are those of records in the topics that are written."""

    layout: Layout
    readers: int
    limits: Mapping[str, int]
    rooms: Rooms
    redone: Mapping[int, str] | None


def job_spec(
    deployment: Deployment, checkpoint: Checkpoint, terms: Terms, state: CheckpointAddress, run: Path
) -> JobSpec:
    """Return the specification; `run` is the folder of the run. Raises KafkaConfigError if an output would be written
    in other transactions than before."""
    d = deployment
    agree_on_writers(checkpoint, d.writers, {output.id: output.table.name for output in d.program.outputs})

    side = side_bytes(d, terms.rooms)
    plan = checkpoint.read(PLAN_NUMBER) or 0

    def room(output: Output) -> RecordLimit | None:
        """Return the record limit of an output that goes to Kafka."""
        number = d.writers.of_output.get(output.id)
        return None if number is None else terms.rooms[f"{number}/{output.table.connector.topics[0]}"]

    def writer(number: int) -> WriterSettings:
        settings = d.writer(number, checkpoint.identifier(), plan)
        return with_small_batches(settings, number, terms.rooms, side if number == d.writers.side else None)

    return JobSpec(
        program=discarding(d.program),
        decoders={s.id: decoder(s.table, s.columns) for s in d.program.sources},
        encoders={
            o.id: encoder(o.table, o.columns, d.program.name, o.key, d.partitions_of(o.id), room(o))
            for o in d.program.outputs
            if o.table.connector.kind != "blackhole"
        },
        layout=terms.layout,
        readers=terms.readers,
        block_rows=d.settings.batch.block_rows,
        state=state,
        limits=terms.limits,
        scratch=str(run.parent),
        run=run.name,
        writers=tuple(map(writer, range(len(d.writers.addresses)))),
        writer_of=d.writers.of_output,
        side_writer=d.writers.side,
        side_bytes=side,
        dead_letter_topic=d.settings.topics.dead_letter,
        late_topic=d.settings.topics.late,
        samples=d.settings.http.samples if d.settings.http.port else 0,
        one_host=is_local(d.settings.spark.master),
        replayed=checkpoint.last_planned(),
        redone=terms.redone,
        plan=plan,
    )
