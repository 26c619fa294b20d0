"""What `tailrace upgrade --from` does: fill what is new in a job, and have the changed query take over."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import COMMITS, last, unfinished
from service.checkpoint.files import Files
from service.checkpoint.small_files import SmallFiles
from service.commands.pipelines import job_named, variable_secrets
from service.commands.stopped_job import hadoop_settings
from service.deployment.deployment import Deployment, checkpoint_of
from service.deployment.filling import (
    FOLDER,
    FillingRecord,
    FillingStart,
    FollowedEnds,
    filling_range,
    positions_of,
)
from service.deployment.planning import plan_deployment
from service.deployment.taking_over import NotFilled, take_over
from service.deployment.upgrading import QUERY, compared
from service.exit_codes import FAILED, OK, WRONG
from service.host.checkpoint_lock import CheckpointInUse, CheckpointLock
from service.host.machine import MachineError
from service.kafka.errors import KafkaConfigError, KafkaFailure
from service.observability.observer import Observer
from service.observability.page.settings_shown import secrets_of
from service.observability.redaction import Redaction
from service.plan.filling import FilledPart, filled_part
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
    "it is refused: the checkpoint is as it was\n"
    "  hint:   let what is new be a job of its own, outside of the statement set, or start afresh in another folder"
)


def fill(pipeline: Pipeline, arguments: argparse.Namespace) -> int:
    """Fill what is new in the one job that is meant; the answer is the exit code."""
    jobs = job_named(pipeline, arguments.job)
    if len(jobs) != 1:
        said = f'has no job "{arguments.job}"' if arguments.job else "has several jobs"
        names = ", ".join(j.name for j in pipeline.jobs)
        return _said(WRONG, f"{pipeline.name} {said}\n  hint:   say --job with one of {names}")
    place = {"TAILRACE_CHECKPOINT": arguments.checkpoint} if arguments.checkpoint else {}
    try:
        settings = load({**os.environ, **place})
        program = compile_job(jobs[0], late_rows=bool(settings.topics.late))
    except ConfigError as error:
        return _said(WRONG, *error.mistakes)
    redaction = Redaction([*secrets_of(settings, (program,)), *variable_secrets(arguments.file)])
    try:
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as held:
            return _Filler(program, settings, redaction, scratch, held).run(arguments)
    except (KafkaConfigError, MachineError, StateMismatch) as error:
        return _said(WRONG, redaction.foreign(str(error)))
    except (KafkaFailure, CheckpointInUse, JvmFailed, NotFilled) as error:
        return _said(FAILED, redaction.foreign(str(error)))


def _said(code: int, *sentences: str) -> int:
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return code


class _Filler:
    """One job that is filled. `held` holds the lock of its checkpoint, once its query is stopped."""

    def __init__(
        self, program: Program, settings: Settings, redaction: Redaction, scratch: str, held: ExitStack
    ) -> None:
        self._program = program
        self._settings = settings
        self._redaction = redaction
        self._url = checkpoint_of(program, settings)
        self._files = self._opened(self._url, scratch)
        self._place = f"{self._url}/{FOLDER}"
        self._filling = self._opened(self._place, scratch)
        self._held = held
        self._stopped = False

    def _opened(self, url: str, scratch: str) -> Files:
        return CheckpointAddress(url, hadoop_settings(self._settings), scratch).open()

    def run(self, arguments: argparse.Namespace) -> int:
        """Do what is asked for; the answer is the exit code."""
        if arguments.discard:
            with CheckpointLock(self._place):
                self._remove()
            return self._tell("the filling is discarded; what it has written to tables that are new stays there")
        known = SmallFiles(self._files).read(QUERY)
        if known is None or last(self._files, COMMITS) < 0:
            return self._tell(f"no batch is done in {self._url}: `tailrace run` starts with the changed query itself")
        found = compared(known, self._program.meaning, self._url)
        if found is None:
            return self._same()
        part = filled_part(self._program, Meaning.from_json(known["meaning"]))
        if not part.anything and not found.refusals:
            return self._tell("nothing is new: `tailrace run` goes on with the changed query")
        return self._fill(arguments, known, found, part)

    def _same(self) -> int:
        record = FillingRecord.read(self._filling)
        if record is not None and record.of == self._program.meaning.query:
            self._remove()  # it was killed when all was done but this
        return self._tell("the checkpoint is that of this query: `tailrace run` goes on with it")

    def _fill(self, arguments: argparse.Namespace, known: Mapping[str, Any], found: Upgrade, part: FilledPart) -> int:
        lines = [*map(str, found.verdicts), *found.notes, *_goes_on(self._program, part)]
        if found.obstacles or part.refusals:
            return self._refuse(lines, [*found.obstacles, *part.refusals])
        # Of tables that are written nothing is asked yet: their topics may be made by the filling.
        planned = plan_deployment(replace(part.program, outputs=()), self._settings)
        record = FillingRecord.read(self._filling)
        if record is not None and record.of == known["meaning"]["query"]:
            self._remove()  # it took over, and was killed before it could tidy up
            record = None
        if record is not None and (record.of, record.part) != (self._program.meaning.query, part.program.meaning.query):
            hint = "go on with that query, or throw the filling away with --discard"
            return self._refuse([], [f"{self._place} holds the filling of another query\n  hint:   {hint}"])
        at: FillingStart = arguments.start
        range_ = filling_range(planned, part, at, self._files, self._program)
        if range_.refusals:
            return self._refuse(lines, list(range_.refusals))
        goes_on = "" if record is None else "a filling goes on that was begun already, from where it began"
        self._tell(*lines, *filter(None, [goes_on]), *range_.notes)
        if arguments.check:
            return self._tell("it can be filled from there")
        if not self._may_begin(arguments):
            return FAILED
        with ExitStack() as lock:
            lock.enter_context(CheckpointLock(self._place))
            if record is None:
                record = FillingRecord(self._program.meaning.query, part.program.meaning.query, range_.starts)
                record.write(self._filling)
        return self._run(part, record, known)

    def _may_begin(self, arguments: argparse.Namespace) -> bool:
        """Whether a query that is stopped is stopped between two batches."""
        if not CheckpointAddress(self._url).is_folder and not arguments.stopped:
            self._tell(
                "an object store has no lock that tells whether the job runs\n"
                "  hint:   stop it, and say --stopped; started before this has ended, it would lose what is filled"
            )
            return False
        if not self._stop():
            return True
        waiting = unfinished(self._files)
        self._let_go()
        if waiting is not None:
            self._tell(
                f"batch {waiting.number} was planned by the query before and is not done: run that query until it is,"
                " then stop it with SIGTERM"
            )
        return waiting is None

    def _stop(self) -> bool:
        """Keep the query from running; whether it does not."""
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

    def _run(self, part: FilledPart, record: FillingRecord, known: Mapping[str, Any]) -> int:
        settings = self._settings.model_copy(update={"http": self._settings.http.model_copy(update={"port": 0})})
        observer = observer_for(settings, self._redaction)
        followed = FollowedEnds(
            self._files,
            {s: at for s, at in positions_of(self._program).items() if s in {x.id for x in part.program.sources}},
            stopped=self._stop,
            release=self._let_go,
            tell=self._teller(observer),
        )

        def plan(program: Program, settings: Settings) -> Deployment:
            return replace(plan_deployment(program, settings), place=self._place, starts=record.starts, ends=followed)

        service = Service((part.program,), settings, observer, plan=plan, place=lambda *_: self._place)
        code = service.run()
        if code != OK or not followed.settled:
            self._tell("what is new is not filled yet, and the checkpoint is as it was; the same command goes on")
            return code or FAILED
        if SmallFiles(self._files).read(QUERY) != known:
            raise NotFilled("another query has gone on with the checkpoint meanwhile: begin anew, with --discard first")
        batch = take_over(self._files, self._filling, part, self._program)
        self._remove()
        return self._tell(f"the changed query has taken over, and goes on with batch {batch}: start it")

    def _teller(self, observer: Observer) -> Callable[..., None]:
        return lambda event, **told: observer.say("info", event, query=self._program.name, **told)

    def _remove(self) -> None:
        self._files.remove_folder(FOLDER)

    def _refuse(self, lines: Sequence[str], reasons: Sequence[str]) -> int:
        self._tell(*lines, *reasons, _REFUSED)
        return WRONG

    def _tell(self, *lines: str) -> int:
        for line in lines:
            print(self._redaction.foreign(f"{self._program.name}: {line}"), flush=True)
        return OK


def _goes_on(program: Program, part: FilledPart) -> list[str]:
    """What becomes of tables that the query before has written, too."""
    tables = dict.fromkeys(o.table.name for o in program.outputs if o.table.name not in part.tables)
    filled = [f"table {name} is written from the place on from which what is new reads again" for name in part.tables]
    if part.operators and tables:
        filled.append(f"what stands in {', '.join(tables)} stays as it is; changes are those of the new query")
    return filled
