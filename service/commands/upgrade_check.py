"""The command `tailrace upgrade --check`: the state of each job under a changed pipeline."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import unfinished
from service.checkpoint.files import Files
from service.checkpoint.small_files import QUERY, SmallFiles
from service.commands.pipelines import job_named, variable_secrets
from service.commands.stopped_job import hadoop_settings
from service.deployment.bounds import agree_on_bounds
from service.deployment.deployment import checkpoint_of
from service.deployment.planning import bounded_sources
from service.deployment.upgrading import compared, obstacles, with_known_ids
from service.exit_codes import OK, WRONG
from service.kafka.errors import KafkaConfigError
from service.observability.page.settings_shown import secrets_of
from service.observability.redaction import Redaction
from service.plan.backfill import backfill_part
from service.plan.lowering.lower import compile_job
from service.plan.meaning import Meaning
from service.plan.program import Program
from service.runtime.shard_operators import StateMismatch
from service.settings import ConfigError, load
from service.sql.pipeline import Pipeline


def check(pipeline: Pipeline, arguments: argparse.Namespace) -> int:
    """Print what happens to each job's state, and whether the job would go on."""
    jobs = job_named(pipeline, arguments.job)
    if not jobs:
        print(f'{pipeline.name} has no job "{arguments.job}"', file=sys.stderr)
        return WRONG
    place = {"TAILRACE_CHECKPOINT": arguments.checkpoint} if arguments.checkpoint else {}
    try:
        settings = load({**os.environ, **place})
        programs = [compile_job(job, late_rows=bool(settings.topics.late)) for job in jobs]
    except ConfigError as error:
        print("\n".join(error.mistakes), file=sys.stderr)
        return WRONG
    redaction = Redaction([*secrets_of(settings, programs), *variable_secrets(arguments.file)])
    goes_on = True
    for program in programs:
        with tempfile.TemporaryDirectory() as scratch:
            url = checkpoint_of(program, settings)
            files = CheckpointAddress(url, hadoop_settings(settings), scratch).open()
            found = CheckedUpgrade(program, files, url)
        for line in found.lines:
            print(redaction.foreign(f"{program.name}: {line}"))
        goes_on = goes_on and found.goes_on
    return OK if goes_on else WRONG


class CheckedUpgrade:
    """The answer of a checkpoint to a program: `lines` for people, and whether the program would go on with it."""

    def __init__(self, program: Program, files: Files, url: str) -> None:
        memory = SmallFiles(files)
        known = memory.read(QUERY)
        self.lines: list[str] = []
        self.goes_on = True
        if known is None:
            self.lines = [f"there is no checkpoint at {url}: the job would start over"]
            return
        program = with_known_ids(program, known)
        refusals, can_backfill = list(_bounds(program, memory)), False
        try:
            upgrade = compared(known, program.meaning, url)
        except StateMismatch as error:
            self.lines, self.goes_on = [str(error)], False
            return
        if upgrade is None:
            self.lines = ["the query is that of the checkpoint"]
        else:
            planned = unfinished(files)
            self.lines = [*map(str, upgrade.verdicts), *upgrade.notes]
            stateless = {str(each) for each in upgrade.verdicts}
            blocking = obstacles(upgrade, None if planned is None else planned.number)
            refusals += [each for each in blocking if each not in stateless]
            self.goes_on = not blocking
            part = backfill_part(program, Meaning.from_json(known["meaning"]))
            self.lines += [f"it cannot be backfilled: {each}" for each in part.refusals if upgrade.to_backfill]
            can_backfill = bool(upgrade.to_backfill) and not (upgrade.obstacles or part.refusals)
        self.goes_on = self.goes_on and not refusals
        self.lines += refusals
        self.lines.append(
            "it continues from this checkpoint"
            if self.goes_on
            else "it is refused: run the query of the checkpoint, or start over with a new one"
        )
        if can_backfill:
            self.lines.append("new operators can be backfilled, as far as is known without Kafka: add --from")


def _bounds(program: Program, memory: SmallFiles) -> Iterator[str]:
    """What is wrong with where bounded sources end."""
    if memory.read("limits") is None:
        return
    try:
        agree_on_bounds(memory, program, bounded_sources(program), lambda source: {})
    except KafkaConfigError as error:
        yield str(error)
