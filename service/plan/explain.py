"""A job in words: the mode and keys of each step, its state and how long it is kept, and the exchanges of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from service.plan.deep_stack import on_a_deep_stack
from service.plan.describe import headline, kind
from service.plan.kept_tables import short_identity
from service.plan.lowering.lower import lower_traced
from service.plan.nodes import Job, Node, Scan, Sink
from service.plan.passes import normalize
from service.plan.program import Operator, Program, Source
from service.plan.properties import event_time, mode, unique_keys
from service.plan.state_bounds import kept
from service.plan.types import flink
from service.plan.validate.cautions import warnings
from service.plan.validate.check import check
from service.plan.validate.problem import Problem
from service.plan.validate.sink_keys import materializes, sink_key
from service.plan.walk import consumers, fields, in_order, inputs


@dataclass(frozen=True, slots=True)
class PlanState:
    """The rows that a step keeps between batches; without a bound they may grow forever."""

    keeps: str
    bound: str | None


@dataclass(frozen=True, slots=True)
class StepText:
    """One relation of the plan. `table` is the table that it reads, `operators` are their names in metrics."""

    id: int
    kind: str
    text: str
    mode: str
    keys: list[list[str]]
    event_time: str | None
    columns: list[tuple[str, str]]
    state: list[PlanState]
    inputs: list[int]
    readers: int
    line: int
    table: str | None
    operators: list[str]


@dataclass(frozen=True, slots=True)
class SinkText:
    """A table that is written. `operators` are the names of its net changes in metrics."""

    table: str
    format: str
    mode: str
    key: list[str]
    state: list[PlanState]
    input: int
    operators: list[str]


@dataclass(frozen=True, slots=True)
class LevelText:
    """The operators of a level; `exchanges` describe how rows come to them from earlier levels. `states` are the ids
    under which a checkpoint stores their state, by operator; `waits` describe which tables are read after others."""

    level: int
    exchanges: list[str]
    operators: list[str]
    states: dict[str, str] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explained:
    """A whole job."""

    job: str
    fingerprint: str
    sinks: list[SinkText]
    steps: list[StepText]
    levels: list[LevelText]
    late_rows: bool = False
    warnings: list[Problem] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        return asdict(self)


@on_a_deep_stack
def explain(job: Job, *, late_rows: bool = False) -> Explained:
    """Explain a job as it would run. Raises `validate.PlanErrors` if it would not."""
    job = normalize(job)
    check(job)
    program, made_for = lower_traced(job, late_rows=late_rows)
    operators: dict[int, list[str]] = {}
    for operator in program.operators:
        operators.setdefault(id(made_for[operator.id]), []).append(operator.name)
    nodes = in_order(job.sinks)
    number = {id(n): i for i, n in enumerate(nodes, 1)}
    readers = consumers(job)
    return Explained(
        job=job.name,
        fingerprint=program.fingerprint,
        sinks=[_sink(s, number[id(s.input)], operators.get(id(s), [])) for s in job.sinks],
        steps=[_step(n, number, readers[id(n)], operators.get(id(n), [])) for n in nodes],
        levels=_levels(program),
        late_rows=late_rows and any(o.name.startswith("window_partial") for o in program.operators),
        warnings=list(warnings(job)),
    )


def _sink(sink: Sink, input: int, operators: list[str]) -> SinkText:
    connector = sink.table.connector
    value = connector.value_format
    return SinkText(
        table=sink.table.name,
        format=", ".join(filter(None, (connector.kind, value.kind if value else ""))),
        mode=mode(sink.input).value,
        key=[sink.table.columns[sink.columns[k]].name for k in sink_key(sink)],
        state=[PlanState("all rows by the primary key", None)] if materializes(sink) else [],
        input=input,
        operators=operators,
    )


def _step(node: Node, number: dict[int, int], readers: int, operators: list[str]) -> StepText:
    time = event_time(node)
    return StepText(
        id=number[id(node)],
        kind=kind(node),
        text=headline(node),
        mode=mode(node).value,
        keys=[[fields(node)[c].name for c in sorted(k)] for k in unique_keys(node)],
        event_time=None if time is None else fields(node)[time].name,
        columns=[(f.name, flink(f.type)) for f in fields(node)],
        state=[PlanState(k.what, k.bound) for k in kept(node)],
        inputs=[number[id(i)] for i in inputs(node)],
        readers=readers,
        line=node.place.line,
        table=node.table.name if isinstance(node, Scan) and node.table.lookup is None else None,
        operators=operators,
    )


def _levels(program: Program) -> list[LevelText]:
    names_of = {s.id: s.table.name for s in program.sources} | {o.id: o.name for o in program.operators}
    levels = []
    for level in range(program.levels + 1):
        operators = [o for o in program.operators if o.level == level]
        exchanges = dict.fromkeys(text for o in operators for text in _exchanges(o, names_of))
        here = [o.name for o in operators]
        read = [s.table.name for s in program.sources] * (not level)
        states = {o.name: short_identity(o.identity) for o in operators if o.kernel.traces()}
        waits = [text for s in program.sources for text in _waits(s, names_of)] * (not level)
        levels.append(LevelText(level, list(exchanges), read + here, states, waits))
    return levels


def _waits(source: Source, names_of: dict[int, str]) -> Iterator[str]:
    if source.after:
        tables = " and ".join(names_of[table] for table in source.after)
        yield f"{source.table.name} is read when {tables} has been, to where it ended at the first start"


def _exchanges(operator: Operator, names_of: dict[int, str]) -> Iterator[str]:
    for port, edge in enumerate(operator.inputs):
        if edge.key is None:
            continue
        known = operator.ports[port] if port < len(operator.ports) else ()
        columns = ", ".join(known[k] if k < len(known) else f"${k}" for k in edge.key)
        yield f"{names_of[edge.producer]} to {operator.name} " + (f"by ({columns})" if columns else "in one shard")


def as_text(explained: Explained, file: str) -> str:
    """Return text, for people: a tree for each sink, the levels, the warnings."""
    lines = [f'job "{explained.job}", fingerprint {explained.fingerprint}', ""]
    steps = {s.id: s for s in explained.steps}
    shown: set[int] = set()
    for sink in explained.sinks:
        key = f", primary key ({', '.join(sink.key)})" if sink.key else ""
        lines.append(f"sink {sink.table}: {sink.format}, {sink.mode}{key}")
        lines += [f"│  keeps {each.keeps}, without a bound" for each in sink.state]
        lines += _tree(steps[sink.input], steps, shown, "")
        lines.append("")
    lines.append("levels")
    for level in explained.levels:
        lines.append(f"  {level.level}  {', '.join(level.operators)}")
        lines += [f"     {each}" for each in level.waits]
        lines += [f"     exchange {each}" for each in level.exchanges]
        lines += [f"     state of {name}: {identity}" for name, identity in level.states.items()]
    if explained.late_rows:
        lines.append(
            "     whole rows go to windows, so that late rows can be stored; without a late topic partial sums would"
        )
    if explained.warnings:
        lines += ["", "warnings"]
        for warning in explained.warnings:
            lines.append(f"  {file}:{warning.place.line}:{warning.place.column}: {warning.primary}")
            lines += [
                f"    {what}: {text}" for what, text in (("detail", warning.detail), ("hint", warning.hint)) if text
            ]
    return "\n".join(lines)


def _tree(step: StepText, steps: dict[int, StepText], shown: set[int], indent: str, last: bool = True) -> list[str]:
    label = f"[{step.id}] " if step.readers > 1 else ""
    corner, deeper = ("└─ ", f"{indent}   ") if last else ("├─ ", f"{indent}│  ")
    if step.id in shown:
        return [f"{indent}{corner}{label}as above"]
    shown.add(step.id)
    bar = "│  " if step.inputs else "   "
    promises = [step.mode, *(f"key ({', '.join(k)})" for k in step.keys)]
    if step.event_time:
        promises.append(f"event time {step.event_time}")
    lines = [f"{indent}{corner}{label}{step.text}", f"{deeper}{bar}{'; '.join(promises)}"]
    for state in step.state:
        until = f"until {state.bound}" if state.bound else "without a bound"
        lines.append(f"{deeper}{bar}keeps {state.keeps}, {until}")
    for each in step.inputs:
        lines += _tree(steps[each], steps, shown, deeper, last=each == step.inputs[-1])
    return lines
