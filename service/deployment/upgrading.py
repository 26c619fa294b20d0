"""The check whether a job can continue from a checkpoint, by the query that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.checkpoint.files import Files
from service.checkpoint.log_change import BackfilledSource, LogChange
from service.checkpoint.small_files import QUERY, SmallFiles
from service.plan.meaning import Meaning, in_current_form
from service.plan.program import Program
from service.plan.source_ids import going_on
from service.plan.upgrade import Upgrade, upgrade
from service.runtime.shard_operators import FORMAT, READABLE, StateMismatch, formats

_AFRESH = "set TAILRACE_CHECKPOINT to a new folder to start over"


def remembered(now: Meaning, change: LogChange | None = None) -> dict[str, Any]:
    """Return what a checkpoint stores of its query, as JSON values; `change` is the change of Spark's offset log since
    the previous query."""
    stored = {"format": FORMAT, "meaning": now.to_json()}
    return stored if change is None else {**stored, "change": change.to_json()}


def recovered_query(files: Files) -> Any:
    """Return the record that a checkpoint has of its query; None for a new checkpoint. If a takeover was interrupted
    while it rewrote Spark's offset log, finish that first. The job must not be running."""
    known = SmallFiles(files).read(QUERY)
    if _is_ours(known) and known.get("change"):
        LogChange.from_json(known["change"]).put(files)
    return known


def _is_ours(known: Any) -> bool:
    """Whether this version of Tailrace reads the stored record."""
    return known is not None and known["format"] in READABLE


def in_format_of_today(known: Any) -> bool:
    """Return whether a checkpoint stores its query in the format that this version of Tailrace writes."""
    return known is not None and bool(known["format"] == FORMAT)


def change_of_log(
    files: Files, known: Any, now: Meaning, backfilled: Mapping[int, BackfilledSource] | None = None
) -> LogChange:
    """Return the change of the offset log when the query that means `now` takes over; `backfilled` are the sources, by
    id, that are new and were read already. There is no change if it is the same query in a former format."""
    before = Meaning.from_json(known["meaning"])
    if backfilled is None and in_current_form(before, now) == now:
        return LogChange.from_json(known["change"]) if known.get("change") else LogChange(0)
    return LogChange.between(files, [s.id for s in before.sources], [s.id for s in now.sources], backfilled)


def with_known_ids(program: Program, known: Any) -> Program:
    """Return `program` with its sources numbered as in the checkpoint that remembers `known`."""
    before = meaning_of(known)
    return program if before is None else going_on(program, before)


def meaning_of(known: Any) -> Meaning | None:
    """Return the `Meaning` that is stored in the record `known`. None if the checkpoint is new, or if this version of
    Tailrace cannot read its format, which `compared` refuses."""
    return Meaning.from_json(known["meaning"]) if _is_ours(known) else None


def compared(known: Any, now: Meaning, url: str) -> Upgrade | None:
    """Return what happens to the state under the query that means `now`; None if there is no state, or if the query is
    the same.

    `known` is the stored record of the checkpoint at `url`, None for a new one. Raises StateMismatch if another version
    of Tailrace wrote it.
    """
    if known is None:
        return None
    if known["format"] not in READABLE:
        raise StateMismatch(
            "the checkpoint was written by another version of the service; nothing was read or written\n"
            f"  detail: the state in {url} has format {known['format']}, this version reads {formats()}\n"
            f"  hint:   run the version that wrote it, or {_AFRESH}"
        )
    before = in_current_form(Meaning.from_json(known["meaning"]), now)
    return None if before == now else upgrade(before, now)


def upgrade_of(known: Any, now: Meaning, begun: int | None, url: str) -> Upgrade | None:
    """Return the same for a job that is to continue.

    Raises StateMismatch, with all reasons, if it cannot. `begun` is the batch that is planned and not done: the query
    that planned it has to finish it.
    """
    found = compared(known, now, url)
    if found is None:
        return None
    refusals = obstacles(found, begun)
    if refusals:
        raise StateMismatch(
            "the checkpoint holds the state of another query; nothing was read or written\n"
            + "".join(f"  detail: {each}\n" for each in [f"{url} cannot continue with this query", *refusals])
            + f"  hint:   run the query that made it, or {_AFRESH}; `tailrace upgrade --check` says what happens to"
            " each operator's state"
            + ("" if found.obstacles else ", `tailrace upgrade --from earliest` backfills new operators")
        )
    return found


def obstacles(found: Upgrade, begun: int | None) -> list[str]:
    """Return all reasons why a changed query cannot continue."""
    waiting = (
        []
        if begun is None
        else [
            f"batch {begun} was planned by the query before and is not done: run that query until it is done, or give"
            " the plan up with `tailrace checkpoint replan` and that query"
        ]
    )
    return [*found.refusals, *waiting]
