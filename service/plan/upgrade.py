"""What becomes of a checkpoint's state under another query: which operators keep theirs, and why others cannot.

Law: a query goes on if each of its operators with state has one of the same identity in the query before, no table that
both read is read from other topics, and those who read its topics find keys and formats as they were. Then every answer
from the next batch on is that of the new query; what was written before stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from service.plan.meaning import ADDED, Meaning, OperatorMeaning, OutputMeaning, SourceMeaning, in_current_form


class Fate(Enum):
    """The fate of the state of an operator."""

    KEPT = "kept"
    NEW = "new"
    GONE = "gone"
    LOST = "cannot be kept"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fate of the state of an operator; `why` is empty where it is kept."""

    operator: str
    fate: Fate
    why: str = ""

    def __str__(self) -> str:
        return f"{self.operator}: {self.fate.value}{': ' if self.why else ''}{self.why}"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """From one query to another. `notes` say what else changes, `obstacles` why the checkpoint cannot be taken over at
    all, `lacking` what it lacks and reading again may backfill, both apart from what the verdicts say. `other_sources`
    says that not the same sources are read, so that the log of batches has another form."""

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    obstacles: tuple[str, ...]
    lacking: tuple[str, ...] = ()
    other_sources: bool = False

    @property
    def refusals(self) -> tuple[str, ...]:
        """Everything that stands in the way; empty where the new query goes on."""
        return (*self.obstacles, *self.to_backfill)

    @property
    def to_backfill(self) -> tuple[str, ...]:
        """Everything that stands in the way and that reading again may backfill."""
        lost = (str(each) for each in self.verdicts if each.fate in (Fate.NEW, Fate.LOST))
        return (*self.lacking, *lost)

    def of(self, fate: Fate) -> list[str]:
        """Return the operators of one fate."""
        return [each.operator for each in self.verdicts if each.fate is fate]


def upgrade(known: Meaning, now: Meaning) -> Upgrade:
    """Compare the query that a checkpoint was written by with the one that is to go on, whose sources have the ids that
    `service.plan.source_ids` gives them."""
    known = in_current_form(known, now)
    written = _outputs(known.outputs, now.outputs)
    lacking = written.lacking
    if now.levels and not known.levels:
        lacking.append("rows were not distributed by a key before, and are now: the checkpoint has no state for that")
    read = _sources(known.sources, now.sources)
    return Upgrade(
        verdicts=tuple(_verdicts(known, now)),
        notes=(*read.notes, *written.notes),
        obstacles=(*read.obstacles, *written.obstacles),
        lacking=tuple(lacking),
        other_sources=known.sources != now.sources,
    )


def _verdicts(known: Meaning, now: Meaning) -> Iterable[Verdict]:
    before = {each.identity: each for each in known.operators}
    kept = {each.identity for each in now.operators if each.identity in before}
    unmatched = [each for each in known.operators if each.identity not in kept]
    for each in now.operators:
        if each.identity in kept:
            yield Verdict(_named(each), Fate.KEPT)
            continue
        was = min((o for o in unmatched if o.kind == each.kind), key=lambda o: _distance(o, each), default=None)
        if was is None:
            yield Verdict(_named(each), Fate.NEW, "the checkpoint has no state for it")
            continue
        unmatched.remove(was)
        yield Verdict(_named(each), Fate.LOST, "; ".join(_differences(was, each, known.zone, now.zone)))
    for each in unmatched:
        yield Verdict(f"{each.name} of the query before", Fate.GONE, "its state is dropped")


def _named(operator: OperatorMeaning) -> str:
    return f"{operator.name} ({operator.text})"


def _distance(was: OperatorMeaning, is_: OperatorMeaning) -> tuple[bool, int]:
    return was.spec != is_.spec, len(set(was.steps) ^ set(is_.steps))


def _differences(was: OperatorMeaning, is_: OperatorMeaning, zone_before: str, zone: str) -> list[str]:
    """Why state of `was` is not that of `is_`, in words."""
    found: list[str] = []
    if was.lasting != is_.lasting:
        found.append(
            "rows of its state had no TTL and have one"
            if any(is_.lasting) and not any(was.lasting)
            else "rows of its state had a TTL and have none"
            if any(was.lasting) and not any(is_.lasting)
            else "other rows of its state have a TTL"
        )
    elif was.spec != is_.spec:
        found.append("it computes or keeps something else: other keys, calls, conditions, columns or types")
    tables = sorted(t for t in was.tables.keys() & is_.tables.keys() if was.tables[t] != is_.tables[t])
    found += [f"table {t} is declared differently (columns, key, watermark, topics or format)" for t in tables]
    known = {digest for _, digest in was.steps}
    added = [is_.texts.get(digest, kind) for kind, digest in is_.steps if digest not in known]
    still = {digest for _, digest in is_.steps}
    removed = [kind for kind, digest in was.steps if digest not in still]
    if added:
        found.append(f"it has new inputs: {', '.join(dict.fromkeys(added))}")
    if removed:
        found.append(f"it has lost inputs: {', '.join(dict.fromkeys(removed))}")
    found += _raised(was, is_, sure=not found)
    if zone_before != zone:
        found.append(f"the time zone was {zone_before} and is {zone}")
    if (was.level, was.placing) != (is_.level, is_.placing):
        found.append("its rows are distributed by other columns")
    return found or ["its input is computed differently"]


def _raised(was: OperatorMeaning, is_: OperatorMeaning, *, sure: bool) -> Iterable[str]:
    """Which versions differ; of what a query before did not call, only where nothing else explains it (`sure`)."""
    for name, version in is_.versions.items():
        before = was.versions.get(name)
        if before is not None and before != version:
            yield f"{name} has version {version} and had version {before}: the state has the answers of before"
        elif before is None and version > 1 and sure:
            yield f"{name} has version {version}: the state may have other answers"


class _Read(NamedTuple):
    """What the tables that are read say: what stands in the way, and what is only to be noted."""

    obstacles: list[str]
    notes: list[str]


def _sources(known: tuple[SourceMeaning, ...], now: tuple[SourceMeaning, ...]) -> _Read:
    added = [each for each in now if each not in known]
    gone = [each for each in known if each not in now]
    obstacles = []
    for table in dict.fromkeys(each.table for each in added):
        was = [each for each in known if each.table == table]
        is_ = [each for each in now if each.table == table]
        if was and {_topics(each) for each in was} != {_topics(each) for each in is_}:
            obstacles.append(
                f"table {table} is read from {_list(map(_topics, is_))}, and was from {_list(map(_topics, was))}: give"
                " it another name"
            )
        elif was:
            obstacles.append(f"table {table} is read {len(is_)} times, and was {len(was)} times: which is which?")
    whole = {each.table for each in known} & {each.table for each in now}
    notes = [
        f"table {_source(each)} is read from the next batch on, from where 'scan.startup.mode' says; `tailrace upgrade"
        " --from` reads it for what it backfills"
        for each in added
        if each.table not in whole
    ]
    notes += [f"table {_source(each)} is no longer read" for each in gone if each.table not in whole]
    return _Read(obstacles, notes)


def _topics(source: SourceMeaning) -> str:
    return _list(source.topics) or source.connector


def _source(source: SourceMeaning) -> str:
    return f"{source.table} ({_topics(source)})"


class _Written(NamedTuple):
    """What the tables that are written say: what stands in the way, what is lacking, what is only to be noted."""

    obstacles: list[str]
    lacking: list[str]
    notes: list[str]


def _outputs(known: tuple[OutputMeaning, ...], now: tuple[OutputMeaning, ...]) -> _Written:
    obstacles: list[str] = []
    lacking: list[str] = []
    notes: list[str] = []
    for table in dict.fromkeys(each.table for each in now):
        was = [each for each in known if each.table == table]
        is_ = [each for each in now if each.table == table]
        if not was and all(each.form.get("changes") == ADDED for each in is_):
            notes.append(
                f"table {table} is written from the next batch on; `tailrace upgrade --from` backfills it before"
            )
            continue
        if not was:
            lacking.append(f"table {table} is newly written: it would lack all earlier rows")
            continue
        differences = {text: None for each in is_ if each not in was for text in _changed(was[0], each)}
        if differences:
            obstacles.append(f"table {table} is written differently than before: {'; '.join(differences)}")
    gone = dict.fromkeys(each.table for each in known if each.table not in {each.table for each in now})
    notes += [f"table {table} is no longer written; its topic keeps its records" for table in gone]
    return _Written(obstacles, lacking, notes)


def _changed(was: OutputMeaning, is_: OutputMeaning) -> list[str]:
    before, after = _whole(was), _whole(is_)
    return [
        f"{name} was {before[name] or 'none'} and is {after[name] or 'none'}"
        for name in after
        if before.get(name) != after[name]
    ]


def _whole(output: OutputMeaning) -> dict[str, str]:
    return {"connector": output.connector, "topic": _list(output.topics), **output.form}


def _list(texts: Iterable[str]) -> str:
    return ", ".join(texts)
