"""Something wrong with a plan, and the error that says all of it."""

from __future__ import annotations

from dataclasses import dataclass

from service.plan.nodes import Place


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a plan: `primary` says what, `detail` what we know, `hint` what to do, `place` where."""

    place: Place
    primary: str
    detail: str = ""
    hint: str = ""


class PlanErrors(Exception):
    """All that keeps a job from running."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(p.primary for p in problems))
        self.problems = problems
