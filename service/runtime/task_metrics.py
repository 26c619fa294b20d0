"""The metrics of a task in one batch; they travel in band with the rows, keyed by the batch that commits it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter

_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})?", re.DOTALL)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def sample(name: str, **labels: object) -> str:
    """Return a metric name with labels, as Prometheus writes it: late_records_total{operator="agg"}."""
    pairs = (f'{label}="{_escaped(str(value))}"' for label, value in labels.items())
    return f"{name}{{{','.join(pairs)}}}" if labels else name


def parsed(written: str) -> tuple[str, dict[str, str]]:
    """Return the name and the labels that `sample` wrote."""
    match = _SAMPLE.fullmatch(written)
    if match is None:
        raise ValueError(f"{written!r} is no sample")
    labels = {k: _ESCAPED.sub(lambda m: "\n" if m[1] == "n" else m[1], v) for k, v in _LABEL.findall(match[2] or "")}
    return match[1], labels


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass(slots=True)
class TaskMetrics:
    """The metrics of one task, by the `sample` of a metric without its prefix.

    `counts` are counters, added over tasks. The others are gauges: `levels` are added over shards, of `lows` the lowest
    counts, of `highs` the highest. An infinite gauge removes the metric: there is nothing more to report.
    """

    counts: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    lows: dict[str, float] = field(default_factory=dict)
    highs: dict[str, float] = field(default_factory=dict)

    def count(self, name: str, by: float = 1, **labels: object) -> None:
        """Add to a counter; a zero leaves no trace."""
        if by:
            _add(self.counts, sample(name, **labels), by)

    def level(self, name: str, by: float, **labels: object) -> None:
        """Add to a level."""
        _add(self.levels, sample(name, **labels), by)

    def low(self, name: str, value: float, **labels: object) -> None:
        """Store the lower of the present value and `value`."""
        _lower(self.lows, sample(name, **labels), value)

    def high(self, name: str, value: float, **labels: object) -> None:
        """Store the higher of the present value and `value`."""
        _raise(self.highs, sample(name, **labels), value)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the seconds spent inside to the phase of that name. They are never part of a result."""
        began = perf_counter()
        try:
            yield
        finally:
            self.count("task_seconds_total", perf_counter() - began, phase=phase)

    def to_json(self) -> bytes:
        """Return the metrics as the payload of an envelope."""
        return json.dumps(asdict(self)).encode()

    def absorb(self, payload: bytes | TaskMetrics) -> None:
        """Add the metrics of another task."""
        other = payload if isinstance(payload, TaskMetrics) else TaskMetrics(**json.loads(payload))
        for merge, mine, others in (
            (_add, self.counts, other.counts),
            (_add, self.levels, other.levels),
            (_lower, self.lows, other.lows),
            (_raise, self.highs, other.highs),
        ):
            for name, value in others.items():
                merge(mine, name, value)


def _add(known: dict[str, float], name: str, value: float) -> None:
    known[name] = known.get(name, 0) + value


def _lower(known: dict[str, float], name: str, value: float) -> None:
    known[name] = min(value, known.get(name, value))


def _raise(known: dict[str, float], name: str, value: float) -> None:
    known[name] = max(value, known.get(name, value))
