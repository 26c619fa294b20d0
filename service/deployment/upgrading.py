"""Whether a job goes on with a checkpoint, by what the checkpoint remembers of the query that wrote it."""

from __future__ import annotations

from typing import Any

from service.plan.meaning import Meaning
from service.plan.upgrade import Upgrade, upgrade
from service.runtime.shard_operators import FORMAT, StateMismatch

QUERY = "fixed"
"""The small file of a checkpoint that says what its state belongs to."""

_AFRESH = "set TAILRACE_CHECKPOINT to a new folder to start afresh"


def remembered(now: Meaning) -> dict[str, Any]:
    """Return what the checkpoint of a query remembers, as JSON values."""
    return {"format": FORMAT, "meaning": now.to_json()}


def compared(known: Any, now: Meaning, url: str) -> Upgrade | None:
    """Return what becomes of the state under the query that means `now`; None where there is none, or it is that of the
    query.

    `known` is what `remembered` gave when the checkpoint at `url` was last taken, None for a new one. Raises
    StateMismatch where another version of Tailrace wrote it.
    """
    if known is None:
        return None
    if known["format"] != FORMAT:
        raise StateMismatch(
            "the checkpoint was written by another version of the service; nothing was read or written\n"
            f"  detail: the state in {url} has format {known['format']}, this version reads format {FORMAT}\n"
            f"  hint:   run the version that wrote it, or {_AFRESH}"
        )
    before = Meaning.from_json(known["meaning"])
    return None if before == now else upgrade(before, now)


def upgrade_of(known: Any, now: Meaning, begun: int | None, url: str) -> Upgrade | None:
    """Return the same, for a job that is to go on. Raises StateMismatch, with all reasons, where it cannot; `begun` is
    the batch that is planned and not done: the query that planned it has to end it."""
    found = compared(known, now, url)
    if found is None:
        return None
    refusals = obstacles(found, begun)
    if refusals:
        raise StateMismatch(
            "the checkpoint holds the state of another query; nothing was read or written\n"
            + "".join(f"  detail: {each}\n" for each in [f"{url} cannot go on with this query", *refusals])
            + f"  hint:   run the query that made it, or {_AFRESH}; `tailrace upgrade --check` says what becomes of"
            " each operator's state"
            + ("" if found.obstacles else ", `tailrace upgrade --from earliest` fills what is new")
        )
    return found


def obstacles(found: Upgrade, begun: int | None) -> list[str]:
    """Return all that stands in the way of a changed query."""
    waiting = (
        []
        if begun is None
        else [
            f"batch {begun} was planned by the query before and is not done: run that query until it is done, or give"
            " the plan up with `tailrace checkpoint replan` and that query"
        ]
    )
    return [*found.refusals, *waiting]
