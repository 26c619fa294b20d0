"""`tailrace run`: run a pipeline on Spark until it ends or is stopped."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from service.commands.checkpoints import load_settings
from service.commands.pipelines import add_file, job_named, read, redaction_of, variable_secrets
from service.exit_codes import WRONG
from service.settings import variables


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "run",
        help="run a pipeline from Kafka to Kafka",
        description="Run every job of the pipeline on Spark, each with its own checkpoint, until all have ended"
        " (bounded sources) or SIGTERM arrives. Settings are environment variables, above all TAILRACE_CHECKPOINT and"
        " TAILRACE_KAFKA__BOOTSTRAP_SERVERS; `tailrace run --settings` lists them.",
    )
    add_file(parser)
    parser.add_argument("--job", default="", metavar="NAME", help="run only the job of this name")
    parser.add_argument("--settings", action=_ShowSettings, help="list the environment variables and their meaning")
    parser.set_defaults(run=run)


class _ShowSettings(argparse.Action):
    """An option like --help: it prints and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print every setting with its default."""
        for name, (default, meaning) in variables().items():
            print(f"{name}={default}\n    {meaning}")
        parser.exit()


def run(arguments: argparse.Namespace) -> int:
    """Read the pipeline and the settings, then run."""
    pipeline = read(arguments.file)
    if pipeline is None:
        load_settings()  # it prints their mistakes: those of pipeline and settings are told at once
        return WRONG
    for note in pipeline.notes:
        print(f"note: {redaction_of(arguments.file, pipeline).text(str(note))}", file=sys.stderr)
    jobs = job_named(pipeline, arguments.job)
    if not jobs:
        print(f'{pipeline.name} has no job "{arguments.job}"', file=sys.stderr)
        return WRONG
    from service.run import run_jobs

    return run_jobs(jobs, variable_secrets(arguments.file))
