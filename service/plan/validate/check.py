"""All that keeps a job from running."""

from __future__ import annotations

from service.plan.deep_stack import on_a_deep_stack
from service.plan.nodes import Job
from service.plan.passes import normalize
from service.plan.validate.changelog import node_changelog_problems, sink_changelog_problems
from service.plan.validate.problem import PlanErrors, Problem
from service.plan.validate.ranks import rank_problems
from service.plan.validate.replay import replay_problems
from service.plan.validate.tables import node_table_problems, sink_table_problems, stream_problems
from service.plan.validate.times import time_problems
from service.plan.validate.waits import wait_problems
from service.plan.walk import in_order

_OF_NODES = (
    node_changelog_problems,
    rank_problems,
    time_problems,
    replay_problems,
    node_table_problems,
)
"""What is asked of every node, in the order of the answers."""

_OF_SINKS = (sink_table_problems, sink_changelog_problems)
"""What is asked of every sink."""


def check(job: Job) -> None:
    """Raise PlanErrors if the normalized job cannot run."""
    found = _problems(job)
    if found:
        raise PlanErrors(found)


@on_a_deep_stack
def problems(job: Job) -> tuple[Problem, ...]:
    """Return what keeps a job, as it was written, from running."""
    return _problems(normalize(job))


def _problems(job: Job) -> tuple[Problem, ...]:
    """In the order of the nodes."""
    found = [p for node in in_order(job.sinks) for ask in _OF_NODES for p in ask(node)]
    found += stream_problems(job)
    found += wait_problems(job)
    found += [p for sink in job.sinks for ask in _OF_SINKS for p in ask(sink)]
    return tuple(dict.fromkeys(found))
