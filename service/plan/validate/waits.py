"""Tables that wait for each other, so that neither is ever read."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.nodes import Job, Scan
from service.plan.validate.problem import Problem
from service.plan.waiting import awaited, waiting_joins


def wait_problems(job: Job) -> Iterator[Problem]:
    """Yield that tables would be read after each other."""
    scans: dict[int, Scan] = {}
    after: dict[int, set[int]] = {}
    for scan, tables in awaited(job):
        scans[id(scan)] = scan
        after[id(scan)] = {id(table) for table in tables}
    # What is left when all have been read that wait for none of the others are those that never are.
    while free := [scan for scan, others in after.items() if not others & after.keys()]:
        for each in free:
            del after[each]
    if not after:
        return
    names = sorted({scans[each].table.name for each in after})
    place = next(join.place for join in waiting_joins(job))
    yield Problem(
        place,
        f"{' and '.join(names)} would wait for each other, and none of them be read",
        detail="a temporal join in processing time answers no row before its table has been read to where it ended when"
        " the job was first started",
        hint="set 'tailrace.temporal.wait-for-table' to 'false' before the INSERT, or make two jobs of it",
    )
