"""The clock of this machine when a job starts, compared with known times, since a jump before the start is not seen.

These are the time of the checkpoint's last batch, and the newest in the topics: producers stamp their records, and
brokers the ends of transactions. A job that was stopped for long while its topics were quiet looks like one whose
clock is ahead. So a doubtful clock is reported, and used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from service.checkpoint.batch_log import OFFSETS, ends, last, planned_at, tick_time
from service.checkpoint.files import Files
from service.deployment.deployment import Deployment
from service.host.clock import JUMP, in_words
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaFailure

QUIET = 86_400.0
"""Seconds that a job may be stopped and its topics quiet, as over a night, before the clock is in doubt."""


@dataclass(frozen=True, slots=True)
class StartClock:
    """The clock's distance `ahead` of all known times, in seconds. Negative: behind the checkpoint; 0: no doubt.
    `doubt` is a sentence for people, and `hint` what to do."""

    ahead: float
    doubt: str
    hint: str


RIGHT = StartClock(0.0, "", "")
"""A clock without a doubt."""


def compared(now: float, of_checkpoint: float, of_topics: float | None) -> StartClock:
    """Compare the clock with the time that the checkpoint noted last and the newest of the topics, if that is known;
    all in seconds since the epoch."""
    if of_checkpoint - now > JUMP:
        return StartClock(
            now - of_checkpoint,
            f"the clock of this machine is {in_words(of_checkpoint - now)} behind the last batch of the checkpoint, of"
            f" {_shown(of_checkpoint)}: until it has caught up, processing time stands still, and no state expires",
            "correct the clock if it is behind; if the last batch was ahead, wait, or start with a new checkpoint",
        )
    newest = max(of_checkpoint, of_topics or 0.0)
    if now - newest <= QUIET:
        return RIGHT
    return StartClock(
        now - newest,
        f"the clock of this machine is {in_words(now - newest)} ahead of everything that the checkpoint and the topics"
        f" know, the newest of {_shown(newest)}: state with a TTL expires by that clock",
        "correct the clock if it is ahead, and replan an incomplete batch (`tailrace checkpoint replan`);"
        " ignore this if the job was stopped, and its topics were quiet, for that long",
    )


def start_clock(deployment: Deployment, files: Files, now: float) -> StartClock:
    """Compare the clock with the times in the checkpoint and the topics of a job. A new checkpoint has nothing to lose,
    and a Kafka that does not answer is ignored."""
    noted = noted_time(files)
    if noted is None:
        return RIGHT
    return compared(now, noted, None if now - noted <= QUIET else _newest(deployment))


def noted_time(files: Files) -> float | None:
    """Return the time of the batch that was planned last, in seconds since the epoch, None where none was. That of its
    tick is later where the clock was set back: processing time stands still there."""
    planned = last(files, OFFSETS)
    if planned < 0:
        return None
    return max(planned_at(files, planned), tick_time(ends(files, planned))) / 1000


def _newest(deployment: Deployment) -> float | None:
    """The newest time in the topics that the job reads, and in those of its markers."""
    topics = {
        source.id: source.table.connector.topics
        for source in deployment.program.sources
        if source.id in deployment.source_addresses
    }
    asked = [(deployment.source_addresses[source].librdkafka, names) for source, names in topics.items()]
    asked += [(each.librdkafka, (deployment.settings.topics.markers,)) for each in deployment.writers.addresses]
    found = []
    for kafka, names in asked:
        try:
            found.append(Cluster(kafka).newest_time(names))
        except KafkaFailure:  # brokers before 3.0 do not tell
            continue
    known = [each for each in found if each is not None]
    return max(known) / 1000 if known else None


def _shown(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC" if 0 <= seconds < 253_402_300_800 else "no time"
