"""The commands `tailrace checkpoint show`, `replan` and `skip`, for a stopped job."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import Range
from service.checkpoint.small_files import SmallFiles
from service.commands.pipelines import job_named, variable_secrets
from service.deployment.deployment import checkpoint_of
from service.deployment.planning import plan_deployment
from service.deployment.replanning import SKIPPED, PlanKept, Replanning, Skipped
from service.deployment.upgrading import recovered_query, with_known_ids
from service.exit_codes import FAILED, OK, WRONG
from service.host.checkpoint_lock import CheckpointInUse, CheckpointLock
from service.kafka.errors import KafkaConfigError, KafkaFailure
from service.observability.page.settings_shown import secrets_of
from service.observability.redaction import Redaction
from service.plan.lowering.lower import compile_job
from service.settings import ConfigError, Settings, load
from service.sql.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class StoppedJob:
    """A stopped job: its planned batch, and the records of its checkpoint."""

    name: str
    replanning: Replanning
    memory: SmallFiles


def work_on(pipeline: Pipeline, arguments: argparse.Namespace) -> int:
    """Open the checkpoint of the one job, and run the sub-command on it."""
    jobs = job_named(pipeline, arguments.job)
    if len(jobs) != 1:
        problem = f'has no job "{arguments.job}"' if arguments.job else "has several jobs"
        names = ", ".join(j.name for j in pipeline.jobs)
        print(f"{pipeline.name} {problem}\n  hint:   pass --job with one of {names}", file=sys.stderr)
        return WRONG
    try:
        settings = load()
        program = compile_job(jobs[0], late_rows=bool(settings.topics.late))
    except ConfigError as error:
        print("\n".join(error.mistakes), file=sys.stderr)
        return WRONG
    redaction = Redaction([*secrets_of(settings, (program,)), *variable_secrets(arguments.file)])
    place = checkpoint_of(program, settings)
    try:
        with CheckpointLock(place), tempfile.TemporaryDirectory() as scratch:
            files = CheckpointAddress(place, hadoop_settings(settings), scratch).open()
            memory = SmallFiles(files)
            program = with_known_ids(program, recovered_query(files))
            job = StoppedJob(program.name, Replanning(plan_deployment(program, settings), files, memory), memory)
            {"show": show, "replan": replan, "skip": skip}[arguments.do](job, arguments)
            return OK
    except KafkaConfigError as error:
        print(redaction.foreign(str(error)), file=sys.stderr)
        return WRONG
    except (PlanKept, KafkaFailure, CheckpointInUse) as error:
        print(redaction.foreign(str(error)), file=sys.stderr)
        return FAILED


def show(job: StoppedJob, arguments: argparse.Namespace) -> None:
    """Print the planned batch, and the records skipped so far."""
    batch = job.replanning.pending()
    if batch is None:
        print(f"{job.name}: no planned batch is incomplete")
    else:
        print(f"{job.name}: batch {batch.number} is planned and not done")
        for table, each in job.replanning.records(batch):
            print(f"  {_words(table, each)}")
    for written in job.memory.read(SKIPPED) or []:
        past = Skipped(**written)
        when = datetime.fromtimestamp(past.at, UTC).isoformat(timespec="seconds")
        passed = _words(past.table, Range(past.topic, past.partition, past.start, past.end))
        partly = f"; {past.partly}" if past.partly else ""
        print(f"{job.name}: skipped with batch {past.batch} at {when} ({past.why}{partly})\n  {passed}")


def replan(job: StoppedJob, arguments: argparse.Namespace) -> None:
    """Replan the planned batch."""
    cut = job.replanning.cut()
    print(
        f"{job.name}: batch {cut.number}, of {cut.before:,} records of a table, is planned again by the next run,"
        f" with {cut.rows:,} at most"
    )


def skip(job: StoppedJob, arguments: argparse.Namespace) -> None:
    """Skip the planned batch."""
    passed = job.replanning.skip(arguments.why)
    print(f"{job.name}: {sum(each.records for each in passed):,} records are skipped")
    if passed and passed[0].partly:
        print(f"  {passed[0].partly}; these stay")
    for each in passed:
        print(f"  {_words(each.table, Range(each.topic, each.partition, each.start, each.end))}")


def hadoop_settings(settings: Settings) -> dict[str, str]:
    """Return the settings of the client of an object store."""
    conf = settings.spark.conf.items()
    return {name.removeprefix("spark.hadoop."): text for name, text in conf if name.startswith("spark.hadoop.fs.")}


def _words(table: str, read_: Range) -> str:
    start = "its beginning" if read_.start is None else f"offset {read_.start}"
    return f"table {table}: topic {read_.topic}, partition {read_.partition}, from {start} to before {read_.end}"
