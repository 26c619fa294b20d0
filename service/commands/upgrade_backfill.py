"""The command `tailrace upgrade --from`: backfill new operators of a job, and let the changed query take over."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import COMMITS, last, unfinished
from service.checkpoint.files import Files
from service.checkpoint.small_files import QUERY, SmallFiles
from service.commands.pipelines import job_named, variable_secrets
from service.commands.stopped_job import hadoop_settings
from service.deployment.backfill import (
    FOLDER,
    BackfillRecord,
    BackfillStart,
    FollowedEnds,
    backfill_range,
    positions_in,
)
from service.deployment.deployment import Deployment, checkpoint_of
from service.deployment.planning import plan_deployment
from service.deployment.taking_over import BackfillIncomplete, take_over
from service.deployment.upgrading import compared, recovered_query, with_known_ids
from service.exit_codes import FAILED, OK, WRONG
from service.host.checkpoint_lock import CheckpointInUse, CheckpointLock
from service.host.machine import MachineError
from service.kafka.errors import KafkaConfigError, KafkaFailure
from service.observability.observer import Observer
from service.observability.page.settings_shown import secrets_of
from service.observability.redaction import Redaction
from service.plan.backfill import BackfillPart, backfill_part
from service.plan.lowering.lower import compile_job
from service.plan.meaning import Meaning
from service.plan.program import Program
from service.plan.upgrade import Upgrade
from service.run import Service, observer_for
from service.runtime.shard_operators import StateMismatch
from service.settings import ConfigError, Settings, load
from service.spark.driver.jvm import JvmFailed
from service.sql.pipeline import Pipeline

_REFUSED = (
    "it is refused: the checkpoint is unchanged\n"
    "  hint:   put the new part into a job of its own, outside of the statement set, or start over in another folder"
)


def backfill(pipeline: Pipeline, arguments: argparse.Namespace) -> int:
    """Backfill the new operators of the chosen jobs, all or none. Return the exit code."""
    jobs = job_named(pipeline, arguments.job)
    if not jobs:
        names = ", ".join(j.name for j in pipeline.jobs)
        return _said(WRONG, f'{pipeline.name} has no job "{arguments.job}"\n  hint:   pass --job with one of {names}')
    place = {"TAILRACE_CHECKPOINT": arguments.checkpoint} if arguments.checkpoint else {}
    try:
        settings = load({**os.environ, **place})
        programs = [compile_job(job, late_rows=bool(settings.topics.late)) for job in jobs]
    except ConfigError as error:
        return _said(WRONG, *error.mistakes)
    redaction = Redaction([*secrets_of(settings, programs), *variable_secrets(arguments.file)])
    try:
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as held:
            return _all(
                [
                    _BackfillJob(program, settings, redaction, scratch, held.enter_context(ExitStack()))
                    for program in programs
                ],
                settings,
                redaction,
                arguments,
            )
    except (KafkaConfigError, MachineError, StateMismatch) as error:
        return _said(WRONG, redaction.foreign(str(error)))
    except (KafkaFailure, CheckpointInUse, JvmFailed, BackfillIncomplete) as error:
        return _said(FAILED, redaction.foreign(str(error)))


def _said(code: int, *sentences: str) -> int:
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return code


def _all(
    backfills: Sequence[_BackfillJob], settings: Settings, redaction: Redaction, arguments: argparse.Namespace
) -> int:
    """Run the command for all jobs. If one is refused, none is backfilled: the pipeline could not run."""
    if arguments.discard:
        for each in backfills:
            each.discard()
        return OK
    code = max([each.prepare(arguments) for each in backfills])
    backfilled = {each.name: each for each in backfills if each.to_backfill is not None}
    if code != OK or arguments.check or not backfilled:
        return code
    settings = settings.model_copy(update={"http": settings.http.model_copy(update={"port": 0})})
    observer = observer_for(settings, redaction)
    parts = tuple(each.begin(observer) for each in backfilled.values())
    code = Service(
        parts,
        settings,
        observer,
        plan=lambda program, settings: backfilled[program.name].planned(program, settings),
        place=lambda program, _: backfilled[program.name].place,
    ).run()
    if code != OK or not all(each.complete for each in backfilled.values()):
        for each in backfilled.values():
            each.print("the backfill is not complete, and the checkpoint is unchanged; run the same command to resume")
        return code or FAILED
    for each in backfilled.values():
        each.take_over()
    return OK


@dataclass(frozen=True, slots=True)
class _ToBackfill:
    """The backfill of a job whose checkpoint remembers `known`. `deployment` is that of the part, `starts` holds where
    its sources begin, and `goes_on` says that a backfill was begun already."""

    part: BackfillPart
    known: Mapping[str, Any]
    deployment: Deployment
    starts: Mapping[int, str]
    goes_on: bool


class _BackfillJob:
    """One job that is backfilled. `held` holds the lock of its checkpoint, once its query is stopped."""

    def __init__(
        self, program: Program, settings: Settings, redaction: Redaction, scratch: str, held: ExitStack
    ) -> None:
        # With the ids of the checkpoint, once they are known, and their positions in its log.
        self._program = program
        self._positions: Mapping[int, int] = {}
        self._settings = settings
        self._redaction = redaction
        self._url = checkpoint_of(program, settings)
        self._files = self._opened(self._url, scratch)
        self.place = f"{self._url}/{FOLDER}"
        self._backfill = self._opened(self.place, scratch)
        self._held = held
        self._stopped = False
        self.to_backfill: _ToBackfill | None = None
        self._followed: FollowedEnds | None = None

    def _opened(self, url: str, scratch: str) -> Files:
        return CheckpointAddress(url, hadoop_settings(self._settings), scratch).open()

    @property
    def name(self) -> str:
        """The name of the job."""
        return self._program.name

    @property
    def complete(self) -> bool:
        """Whether everything is read, and the previous query is stopped."""
        return self._followed is not None and self._followed.complete

    def discard(self) -> None:
        """Delete what was backfilled so far."""
        with CheckpointLock(self.place):
            self._remove()
        self.print("the backfill is discarded; rows that it has written to new tables remain")

    def prepare(self, arguments: argparse.Namespace) -> int:
        """Check whether the job can be backfilled, and set `to_backfill`. Return the exit code."""
        known = SmallFiles(self._files).read(QUERY)
        if known is None or last(self._files, COMMITS) < 0:
            return self.print(f"no batch is done in {self._url}: `tailrace run` starts with the changed query itself")
        self._program = with_known_ids(self._program, known)
        found = compared(known, self._program.meaning, self._url)
        if found is None:
            return self._same()
        before = Meaning.from_json(known["meaning"])
        self._positions = positions_in(before)
        part = backfill_part(self._program, before)
        if not part.anything and not found.refusals:
            return self.print("nothing is new: `tailrace run` continues with the changed query")
        return self._prepare(arguments, known, found, part)

    def _same(self) -> int:
        record = BackfillRecord.read(self._backfill)
        if record is not None and record.of == self._program.meaning.query:
            self._remove()  # it was killed before this last step
        return self.print("the checkpoint belongs to this query: `tailrace run` continues from it")

    def _prepare(
        self, arguments: argparse.Namespace, known: Mapping[str, Any], found: Upgrade, part: BackfillPart
    ) -> int:
        lines = [*map(str, found.verdicts), *found.notes, *_goes_on(self._program, part)]
        if found.obstacles or part.refusals:
            return self._refuse(lines, [*found.obstacles, *part.refusals])
        # Tables that are written are not checked yet: the backfill may create their topics.
        deployment = plan_deployment(replace(part.program, outputs=()), self._settings)
        record = BackfillRecord.read(self._backfill)
        if record is not None and record.of == known["meaning"]["query"]:
            self._remove()  # it took over, and was killed before the clean-up
            record = None
        if record is not None and (record.of, record.part) != (self._program.meaning.query, part.program.meaning.query):
            hint = "continue with that query, or delete the backfill with --discard"
            return self._refuse([], [f"{self.place} holds the backfill of another query\n  hint:   {hint}"])
        at: BackfillStart = arguments.start
        range_ = backfill_range(deployment, part, at, self._files, self._positions)
        if range_.refusals:
            return self._refuse(lines, list(range_.refusals))
        goes_on = "" if record is None else "an earlier backfill is resumed, from the position at which it began"
        self.print(*lines, *filter(None, [goes_on]), *range_.notes)
        if arguments.check:
            return self.print("it can be backfilled from there")
        if not self._may_begin(arguments):
            return FAILED
        starts = range_.starts if record is None else record.starts
        self.to_backfill = _ToBackfill(part, known, deployment, starts, goes_on=record is not None)
        return OK

    def _may_begin(self, arguments: argparse.Namespace) -> bool:
        """Whether a stopped query has stopped between two batches."""
        if not CheckpointAddress(self._url).is_folder and not arguments.stopped:
            self.print(
                "an object store has no lock that shows whether the job runs\n"
                "  hint:   stop it, and pass --stopped; a job started before the backfill ends would lose what is"
                " backfilled"
            )
            return False
        if not self._stop():
            return True
        recovered_query(self._files)
        waiting = unfinished(self._files)
        self._let_go()
        if waiting is not None:
            self.print(
                f"batch {waiting.number} was planned by the query before and is not done: run that query until it is,"
                " then stop it with SIGTERM"
            )
        return waiting is None

    def _stop(self) -> bool:
        """Keep the query from running. Return whether that succeeded."""
        if not self._stopped:
            try:
                self._held.enter_context(CheckpointLock(self._url))
            except CheckpointInUse:
                return False
            self._stopped = True
        return True

    def _let_go(self) -> None:
        self._held.close()
        self._stopped = False

    def begin(self, observer: Observer) -> Program:
        """Store what is backfilled, and return the part of the program that does it."""
        found = self._found()
        if not found.goes_on:
            with CheckpointLock(self.place):
                part = found.part.program.meaning.query
                BackfillRecord(self._program.meaning.query, part, found.starts).write(self._backfill)
        before, read = self._positions, [s.id for s in found.part.program.sources]
        self._followed = FollowedEnds(
            self._files,
            {source: before[source] for source in read if source in before},
            {source: partial(found.deployment.end_offsets, source) for source in read if source not in before},
            stopped=self._stop,
            release=self._let_go,
            report=self._reporter(observer),
        )
        return found.part.program

    def planned(self, program: Program, settings: Settings) -> Deployment:
        """Return the deployment of the part."""
        starts = self._found().starts
        return replace(plan_deployment(program, settings), place=self.place, starts=starts, ends=self._followed)

    def take_over(self) -> None:
        """Have the changed query take over what was backfilled. Raises BackfillIncomplete."""
        found = self._found()
        if SmallFiles(self._files).read(QUERY) != found.known:
            raise BackfillIncomplete(
                "another query has used the checkpoint meanwhile: start again, with --discard first"
            )
        batch = take_over(self._files, self._backfill, found.part, self._program)
        self._remove()
        self.print(f"the changed query has taken over, from batch {batch} on: start it")

    def _found(self) -> _ToBackfill:
        assert self.to_backfill is not None, "prepared"
        return self.to_backfill

    def _reporter(self, observer: Observer) -> Callable[..., None]:
        return lambda event, **details: observer.say("info", event, query=self._program.name, **details)

    def _remove(self) -> None:
        self._files.remove_folder(FOLDER)

    def _refuse(self, lines: Sequence[str], reasons: Sequence[str]) -> int:
        self.print(*lines, *reasons, _REFUSED)
        return WRONG

    def print(self, *lines: str) -> int:
        """Print lines about the job. Return the exit code of a job without errors."""
        for line in lines:
            print(self._redaction.foreign(f"{self._program.name}: {line}"), flush=True)
        return OK


def _goes_on(program: Program, part: BackfillPart) -> list[str]:
    """What happens to tables that the previous query has written, too."""
    tables = dict.fromkeys(o.table.name for o in program.outputs if o.table.name not in part.tables)
    backfilled = [f"table {name} is written from the position on at which the backfill starts" for name in part.tables]
    if part.operators and tables:
        backfilled.append(
            f"what stands in {', '.join(tables)} is not backfilled; its changes are those of the new query"
        )
    return backfilled
