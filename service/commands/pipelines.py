"""Pipeline files, as all commands read them: to jobs, with every mistake reported the same way."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from service.deployment.table_options import wrong_options
from service.observability.redaction import Redaction, secrets_of_tables, secrets_of_variables
from service.plan.nodes import Job, Scan
from service.plan.table import Table
from service.plan.validate.problem import Problem
from service.plan.walk import in_order
from service.sql.errors import Mistake, PipelineErrors
from service.sql.parse.source import decoded, read_source
from service.sql.pipeline import Pipeline, load


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a pipeline file."""
    parser.add_argument("file", type=Path, help="the pipeline, a file of SQL statements")


def read(path: Path) -> Pipeline | None:
    """Return the pipeline of a file; None, with its mistakes shown, if it has any."""
    try:
        return _checked(load(path, os.environ))
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
        return None
    except PipelineErrors as errors:
        redaction = Redaction(variable_secrets(path))
        for each in errors.mistakes:
            print(redaction.foreign(str(each)), file=sys.stderr)
        return None


def _checked(pipeline: Pipeline) -> Pipeline:
    """`pipeline`, whose tables have options that can be followed."""
    jobs = (*pipeline.jobs, *pipeline.explains)
    used = [sink.table for job in jobs for sink in job.sinks]
    used += [node.table for job in jobs for node in in_order(job.sinks) if isinstance(node, Scan)]
    different: list[Table] = []
    for table in (*pipeline.tables.values(), *used):
        if not any(table.name == each.name and table.connector == each.connector for each in different):
            different.append(table)
    found = {
        Mistake(pipeline.name, pipeline.place_of(w.table, w.key), w.primary, w.detail, w.hint): None
        for w in wrong_options(different)
    }
    if found:
        raise PipelineErrors(tuple(sorted(found, key=lambda m: (m.place.line, m.place.column))))
    return pipeline


def variable_secrets(path: Path) -> tuple[str, ...]:
    """Return the values of the variables that a file asks for and whose names say that they are secret."""
    source = read_source(path.name, decoded(path.read_bytes())[0], os.environ)
    return tuple(secrets_of_variables(source.asked, os.environ))


def redaction_of(path: Path, pipeline: Pipeline) -> Redaction:
    """Return what hides the secrets of a pipeline in its output."""
    return Redaction([*variable_secrets(path), *secrets_of_tables(pipeline.tables.values())])


def mistake(file: str, problem: Problem) -> Mistake:
    """Return a problem of a plan as a mistake of its file."""
    return Mistake(file, problem.place, problem.primary, problem.detail, problem.hint)


def job_named(pipeline: Pipeline, name: str) -> tuple[Job, ...]:
    """Return all jobs, or the one of that name."""
    return tuple(j for j in pipeline.jobs if not name or j.name == name)
